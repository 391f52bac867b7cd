"""Bridges by the settings: everything that is wrong with them, and the two sides of each. docs/guides/bridges.md"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD, OWN_PASSWORD
from rumq.bridge.bridge import GONE, BridgeRules
from rumq.bridge.counts import IN, OUT
from rumq.bridge.remote_addresses import RemoteAddresses
from rumq.bridge.side import AUTO, BROKER_ID, LOCAL, REMOTE, Side
from rumq.bridge.topic_rules import TopicMap, TopicRule, TopicRuleFault, is_both_ways, parse_rule
from rumq.client.session.options import ConnectOptions
from rumq.client.transport.address import BrokerAddress, parse_url
from rumq.client.transport.streams import open_transport
from rumq.client.transport.tls import Tls, ssl_context
from rumq.errors import ConfigError, ConnectionLost, Fault
from rumq.gateway.broker.broker_socket import open_broker
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import Will
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import check_topic_name, is_reserved
from rumq.process.listeners.gateway_listener import gateway_socket
from rumq.settings.keys import as_toml
from rumq.settings.table import Bridge, Settings

SOURCE = "settings"
NOT_REPLICATED = (
    'bridges of a cluster need a stream with durability "quorum": what a bridge notes would be on one node, and no '
    "other one could take the bridge over"
)
FILTERS_BYTES_MAX = 100_000  # of a bridge's filters on a node of a cluster, whose journal keeps them
VERSIONS = {"auto": AUTO, "5": 5, "3.1.1": 4}  # of a bridge -> of `Side`
TLS_KEYS = {"cafile": "tls_authority", "cert": "tls_certificate", "key": "tls_key"}  # of `Tls` -> of a bridge


def check_bridges(settings: Settings) -> None:
    """raises: ConfigError with every fault"""
    if found := list(faults_of(settings)):
        raise ConfigError(*found)


def faults_of(settings: Settings) -> Iterator[Fault]:
    names: set[str] = set()
    for each in settings.bridge:
        if each.name in names:
            yield fault_of(each, "name", "two bridges have this name: give one of them another")
        names.add(each.name)
        yield from faults_of_topics(each)
        yield from faults_of_address(each)
        yield from faults_of_notifications(each)
        if settings.cluster.name:
            yield from faults_of_size(each)
    if settings.bridge and settings.cluster.name and not is_replicated(settings):
        yield Fault(SOURCE, "log.durability", "", NOT_REPLICATED)
    if settings.bridge and not settings.mqtt.session_expiry_seconds_max:
        yield Fault(
            SOURCE, "mqtt.session_expiry_seconds_max", "0", "bridges need sessions that stay: expected 60 or more"
        )


def is_replicated(settings: Settings) -> bool:
    """Whether the journals of a cluster are on a majority before something is answered."""
    return settings.cluster.replicas == 1 or any(each.durability == "quorum" for each in settings.stream)


def faults_of_topics(bridge: Bridge) -> Iterator[Fault]:
    for text in bridge.topics:
        try:
            parse_rule(text)
        except TopicRuleFault as fault:
            yield Fault(SOURCE, f"bridge.{bridge.name}.topics", as_toml(text), str(fault))


def faults_of_size(bridge: Bridge) -> Iterator[Fault]:
    """On a node of a cluster."""
    size = sum(len(each.encode()) for each in bridge.topics)
    if size > FILTERS_BYTES_MAX:
        problem = f"{size} bytes are too many on a node of a cluster: expected at most {FILTERS_BYTES_MAX} in all"
        yield fault_of(bridge, "topics", problem)


def faults_of_notifications(bridge: Bridge) -> Iterator[Fault]:
    topic = bridge.notification_topic
    try:
        if topic:
            check_topic_name(topic)
    except MqttFault as fault:
        yield fault_of(bridge, "notification_topic", str(fault))
    if is_reserved(topic):
        yield fault_of(bridge, "notification_topic", "expected a topic that clients may publish to, not under $SYS")


def faults_of_address(bridge: Bridge) -> Iterator[Fault]:
    addresses: list[BrokerAddress] = []
    for key, url in (("url", bridge.url), *(("more_urls", each) for each in bridge.more_urls)):
        try:
            address = parse_url(url)
        except ConfigError as fault:
            # Of an option of the client, which has no section: its place and value stand in the first two fields.
            for each in fault.faults:
                yield Fault(SOURCE, f"bridge.{bridge.name}.{key}", as_toml(each.key), each.problem)
            continue
        if address.username is not None:
            problem = "expected no user in it: name user and password_file"
            yield Fault(SOURCE, f"bridge.{bridge.name}.{key}", "", problem)
        addresses.append(address)
    if bridge.password_file and not bridge.user:
        yield fault_of(bridge, "user", "is missing: password_file needs it")
    if not addresses:
        return
    if not any(each.is_tls for each in addresses):
        for key in TLS_KEYS.values():
            if getattr(bridge, key):
                yield fault_of(bridge, key, "needs TLS: expected a url of mqtts:// or wss://")
        return
    if not all(each.is_tls for each in addresses):
        yield fault_of(bridge, "more_urls", "expected TLS for all addresses of the bridge, or for none")
    try:
        ssl_context(tls_of(bridge))
    except ConfigError as fault:
        for each in fault.faults:
            yield fault_of(bridge, TLS_KEYS[each.source], each.problem)


def fault_of(bridge: Bridge, key: str, problem: str) -> Fault:
    return Fault(SOURCE, f"bridge.{bridge.name}.{key}", as_toml(getattr(bridge, key)), problem)


def tls_of(bridge: Bridge) -> Tls:
    return Tls(cafile=bridge.tls_authority, cert=bridge.tls_certificate, key=bridge.tls_key)


# --- what runs


def rules_of(bridge: Bridge) -> BridgeRules:
    return BridgeRules(
        bridge.name, topic_rules_of(bridge), bridge.inflight_max, bridge.bytes_per_second_max, bridge.retry_seconds_max,
        bridge.exactly_once,
    )  # fmt: skip


def topic_rules_of(bridge: Bridge) -> tuple[TopicRule, ...]:
    return tuple(map(parse_rule, bridge.topics))


def local_client_id(name: str) -> str:
    return f"rumq-bridge/{name}"


def local_side(settings: Settings, bridge: Bridge) -> Side:
    """The broker's own socket: as a user, whose rules hold, or as the broker itself, which relays what the map says."""
    options = ConnectOptions(
        client_id=local_client_id(bridge.name), username=bridge.local_user or None,
        password=OWN_PASSWORD if bridge.local_user else BROKERS_PASSWORD, will=maybe_will(bridge), **common(bridge),
    )  # fmt: skip
    return Side(
        LOCAL,
        partial(open_local, gateway_socket(settings)),
        options,
        TopicMap(topic_rules_of(bridge), OUT).subscriptions(),
    )


def remote_addresses(bridge: Bridge, broker_id: str) -> RemoteAddresses:
    """raises: ConfigError"""
    return RemoteAddresses(remote_sides(bridge, broker_id), is_round_robin=bridge.round_robin)


def remote_sides(bridge: Bridge, broker_id: str) -> list[Side]:
    """By each address. broker_id: of this broker, so that bridges of several have sessions of their own.

    raises: ConfigError"""
    options = ConnectOptions(
        client_id=bridge.client_id or f"{local_client_id(bridge.name)}/{broker_id}", username=bridge.user or None,
        password=password_of(bridge), will=None if bridge.notifications_local_only else maybe_will(bridge),
        **common(bridge),
    )  # fmt: skip
    rules, sides = topic_rules_of(bridge), []
    filters = TopicMap(rules, IN).subscriptions()
    for url in (bridge.url, *bridge.more_urls):
        address = parse_url(url)
        open_stream = partial(open_transport, address, ssl_context(tls_of(bridge)) if address.is_tls else None)
        version = VERSIONS[bridge.mqtt_version]
        sides.append(Side(REMOTE, open_stream, options, filters, url, version, echoes=is_both_ways(rules)))
    return sides


def common(bridge: Bridge) -> dict[str, Any]:
    return {
        "session_expiry": bridge.session_expiry_seconds, "keep_alive": bridge.keep_alive_seconds,
        "topic_alias_maximum": 0, "properties": Properties(user_properties=[(BROKER_ID, "")]),
    }  # fmt: skip


def maybe_will(bridge: Bridge) -> Will | None:
    """What a broker says when the bridge is gone."""
    return Will(bridge.notification_topic, GONE, 1, retain=True) if bridge.notification_topic else None


def password_of(bridge: Bridge) -> Callable[[], str] | None:
    """Asked at each connection: a token in the file may have been replaced. raises then: OSError"""
    if not bridge.password_file:
        return None

    def read() -> str:
        with open(bridge.password_file, encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")

    return read


async def open_local(path: str) -> trio.abc.Stream:
    """raises: OSError, ConnectionLost"""
    try:
        return await open_broker(path)
    except trio.BrokenResourceError as fault:
        raise ConnectionLost("the local broker is not there") from fault
