"""CONNECT: under which conditions a client comes in, and with which session. MQTT 5.0, 3.1 and 3.2; 3.1.1 likewise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rumq.auth.identity import Identity
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from rumq.session.flow_control.limits import EXPIRES_NEVER, Limits
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from rumq.session.handshake.authentication import Authentication
from rumq.session.protocol import authorization
from rumq.session.state.persistent_sessions import holder_of
from rumq.session.state.session import Shape
from rumq.session.state.session_owner import owner_of
from rumq.session.state.wills import author_of

PACKET_BYTES_MAX = 268_435_460  # of MQTT: no limit that anybody would have to be told

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


def accept(link: Link, connect: p.Connect) -> None:
    """Check a CONNECT, and begin to find out whose it is; MqttFault refuses it."""
    given = connect.properties
    link.client_max_packet = given.get("maximum_packet_size", 0)
    link.wants_problem_information = given.get("request_problem_information", True) not in (0, False)
    check(link, connect)
    link.named = connect.username or ""
    link.entering = Authentication(link, connect)
    link.entering.go()


def enter(link: Link, connect: p.Connect, who: Identity, told_of_method: Properties) -> None:
    """The client is who it says: take over or make its session, and answer.

    told_of_method: what CONNACK says of enhanced authentication"""
    house, limits = link.house, link.limits
    given = connect.properties
    link.who = who
    link.method = connect.properties.get("authentication_method")
    link.note_expiry()
    client_id = link.claimed or house.assigned_client_id(link.entrance.assigned_prefix)
    if link.entrance.user_as_client_id and (who.user is None or client_id != who.user):
        raise MqttFault("the client id is the user name here, and it has none", Reason.NOT_AUTHORIZED)
    if who.client_id is not None and client_id != who.client_id:
        raise MqttFault(f"it may come as {who.client_id!r} alone", Reason.NOT_AUTHORIZED)
    expiry, told = expiry_of(connect, limits)
    owner = owner_of(who, link.entrance.mount_point)
    old = house.registry.find(client_id, owner)
    if (old is None or old.link is None) and not house.has_room(link):
        raise MqttFault("as many clients as may be connected are", Reason.QUOTA_EXCEEDED)
    holder = holder_of(who.user, link.address)
    if expiry and (old is None or old.holder is None):
        own_max = link.entrance.quotas.sessions_max if who.user is not None else 0
        if why := house.registry.persistent.refusal(holder, limits.sessions_max, own_max):
            raise MqttFault(why, Reason.QUOTA_EXCEEDED)
    if old is not None and old.link is not None:
        house.event("client.taken_over", old.link, by=link.transport.peer)
        old.link.dismiss(Reason.SESSION_TAKEN_OVER, "another client connected with this client id")
    if not link.entrance.quotas.enter(who.user):
        raise MqttFault(f"user {who.user!r} has too many connections", Reason.QUOTA_EXCEEDED)
    replaying = link.entrance.quotas.replaying.buckets(who.user, house.monotonic)
    link.buckets = link.entrance.quotas.sending.buckets(who.user, house.monotonic)
    alias_out = min(given.get("topic_alias_maximum", 0), limits.topic_alias_out_maximum)
    shape = Shape(5 if connect.version == 5 else 4, link.client_max_packet, alias_out)
    session, present = house.registry.open(
        client_id, shape, personal=alias_out > 0, clean_start=connect.clean_start, owner=owner
    )
    session.version = connect.version
    session.expiry_seconds = expiry
    if expiry and session.holder != holder:
        house.registry.persist(session, holder)
    session.will_at = None
    link.keep_alive = float(connect.keep_alive)
    properties = told
    if connect.version == 5:
        if limits.topic_alias_maximum:
            properties["topic_alias_maximum"] = limits.topic_alias_maximum
        if not link.claimed:
            properties["assigned_client_identifier"] = client_id
        bound = limits.keep_alive_seconds_max
        if bound < 65535 and (not connect.keep_alive or connect.keep_alive > bound):
            properties["server_keep_alive"] = bound
            link.keep_alive = float(bound)
        properties = conditions(limits, {**properties, **told_of_method})
        if session.missed:
            lost = [("rumq-lost", lost_text(gap)) for gap in session.missed]
            properties["user_properties"] = [*properties.get("user_properties", ()), *lost]
    window = min(limits.inflight_max, given.get("receive_maximum", 65535))
    authorization.find(link, client_id)
    session.will = authorization.permitted_will(link, connect)
    session.author = author_of(who, link.entrance.name) if session.will is not None else None
    house.journal.connected(session)
    link.begin(session, window, limits.topic_alias_maximum, limits.receive_maximum)
    if replaying and link.flow is not None:
        link.flow.meter = ReplayThrottle(
            replaying, lambda: house.monotonic, house.later, partial(house.refresh, link)
        )
    answer(link, p.Connack(present, Reason.SUCCESS, properties))
    if link.closed:
        return
    if link.keep_alive:
        house.keep_alive_monitor.add(link, house.monotonic + 1.5 * link.keep_alive)
    house.event(
        "client.connected",
        link,
        version=connect.version,
        resumed=present,
        keep_alive_seconds=connect.keep_alive,
        user=who.user,
        method=who.method,
    )
    missed, session.missed = session.missed, []
    for gap in missed:
        house.event("log.gap", link, **gap)
    link.attach()


def lost_text(gap: dict[str, Any]) -> str:
    """What a session lost while its client was away, for CONNACK: place in the log, records that it lost of it, why."""
    where = f"{gap['stream']}/g{gap['generation']}/p{gap['partition']}"
    return f"{where} {gap['first_lsn']}-{gap['next_lsn'] - 1} {gap['records']} {gap['why']}"


def check(link: Link, connect: p.Connect) -> None:
    """Refuse what cannot be served."""
    limits, entrance, client_id = link.limits, link.entrance, link.claimed
    if not client_id and not entrance.user_as_client_id:
        if connect.version == 3 or (connect.version == 4 and not connect.clean_start):
            raise MqttFault("an empty client id without a clean session", Reason.CLIENT_IDENTIFIER_NOT_VALID)
        if not entrance.empty_client_id:
            raise MqttFault("an empty client id, and none is given here", Reason.CLIENT_IDENTIFIER_NOT_VALID)
    if len(client_id.encode()) > limits.client_id_bytes_max:
        raise MqttFault(
            f"a client id of more than {limits.client_id_bytes_max} bytes", Reason.CLIENT_IDENTIFIER_NOT_VALID
        )
    if client_id and entrance.client_id_prefixes and not client_id.startswith(entrance.client_id_prefixes):
        raise MqttFault(
            "a client id that begins with none of the prefixes allowed here", Reason.NOT_AUTHORIZED
        )
    if connect.will is not None:
        check_topic_name(
            connect.will.topic, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max
        )
        if connect.will.qos > limits.maximum_qos:
            raise MqttFault(f"a will of QoS {connect.will.qos}", Reason.QOS_NOT_SUPPORTED)
        if connect.will.retain and not limits.retain_available:
            raise MqttFault("a retained will", Reason.RETAIN_NOT_SUPPORTED)


def expiry_of(connect: p.Connect, limits: Limits) -> tuple[int, Properties]:
    """How many seconds the session outlives its connection, and what CONNACK must say of it."""
    told: Properties = {}
    if connect.version == 5:
        wanted = connect.properties.get("session_expiry_interval", 0)
    else:
        wanted = 0 if connect.clean_start else EXPIRES_NEVER
    expiry = min(wanted, limits.session_expiry_seconds_max)
    if connect.version == 5 and expiry != wanted:
        told["session_expiry_interval"] = expiry
    return expiry, told


def conditions(limits: Limits, told: Properties) -> Properties:
    """What this broker allows, where it differs from what the standard assumes. MQTT 5.0, 3.2.2.3."""
    properties: Properties = {**told}
    if not limits.retain_available:
        properties["retain_available"] = False
    if limits.packet_bytes_max < PACKET_BYTES_MAX:
        properties["maximum_packet_size"] = limits.packet_bytes_max
    if limits.receive_maximum < 65535:
        properties["receive_maximum"] = limits.receive_maximum
    if limits.maximum_qos < 2:
        properties["maximum_qos"] = limits.maximum_qos
    if not limits.wildcard_available:
        properties["wildcard_subscription_available"] = False
    if not limits.subscription_identifiers_available:
        properties["subscription_identifier_available"] = False
    if not limits.shared_available:
        properties["shared_subscription_available"] = False
    if limits.durability:
        properties["user_properties"] = [
            ("rumq-durability" if name == "main" else f"rumq-durability/{name}", durability)
            for name, durability in limits.durability
        ]
    return properties


def answer(link: Link, connack: p.Connack) -> None:
    """Send CONNACK; user properties give way to the client's packet limit. MQTT-3.2.2-20."""
    if link.client_max_packet and len(encode(connack, link.version)) > link.client_max_packet:
        bare: Properties = {**connack.properties}
        bare.pop("user_properties", None)
        connack = p.Connack(connack.session_present, connack.reason, bare)
        if len(encode(connack, link.version)) > link.client_max_packet:
            link.house.event(
                "client.refused", link, reason=0x95, why="its maximum packet size holds no CONNACK"
            )
            link.end(with_will=False)
            return
    link.promise(encode(connack, link.version), barrier=True)
