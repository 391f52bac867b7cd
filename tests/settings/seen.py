"""Where each live key is seen in a running broker: in the very object that the code which obeys it asks.

A live key that stands in none of these tables, nor in tests/settings/test_live.py as one that is seen from outside,
fails the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from rumq.settings.keys import INHERITED, SECTIONS
from rumq.settings.types.setting_types import RESTART


class Broker(NamedTuple):
    """shard: `rumq.shards.assembly.Shard`; listeners: its `ShardListeners`"""

    shard: Any
    listeners: Any

    @property
    def policy(self) -> Any:
        """Of the first listener, which its connections ask."""
        return next(iter(self.listeners.policies.values()))

    @property
    def rate(self) -> Any:
        return self.listeners._rates[next(iter(self.listeners.policies))]

    def method(self, name: str) -> Any:
        return next(each for each in self.policy.authenticator.methods if each.name == name)

    def spec(self, stream: str) -> Any:
        """Of the stream's partition, which the log and the quotas of topics ask."""
        return next(each.spec for each in self.shard.store.own if each.stream == stream)


class Gateway(NamedTuple):
    context: Any
    exporter: Any


Look = Callable[[Any], object]


def limit(name: str) -> Look:
    """What sessions of new connections ask."""
    return lambda broker: getattr(broker.policy.limits, name)


def quota(name: str) -> Look:
    return lambda broker: getattr(broker.policy.quotas, name)


def rate(of: str, whose: str, unit: str) -> Look:
    """Of buckets that new connections get. of: sending or replaying; whose: _client, _user, _everybody"""
    return lambda broker: getattr(getattr(getattr(broker.policy.quotas, of), whose), unit)


def kept(stream: str, name: str) -> Look:
    if name == "retention":
        return lambda broker: "space" if broker.spec(stream).yields else "forever"
    return lambda broker: getattr(broker.spec(stream), name) or 0


def rules_of(rules: Any) -> object:
    return None if rules is None else [list(each.topics) for each in rules._file.rule]


def claim(name: str) -> Look:
    return lambda broker: getattr(broker.method("token")._claims, name)


def sampler(name: str) -> Look:
    """The turn asks it of each message; none: no message is traced."""
    return lambda broker: getattr(broker.shard.turn.appender.sampler, name, 0)


ALIVE_OF_MQTT = [name for name, key in SECTIONS["mqtt"].items() if key.applies != RESTART]
IN_BROKER: dict[str, Look] = {
    **{f"mqtt.{name}": limit(name) for name in ALIVE_OF_MQTT},
    # What a topic is charged for is asked of the broker, for clients that are connected too.
    "mqtt.new_topics_per_second_max": lambda b: b.shard.clients.broker.limits.new_topics_per_second_max,
    "mqtt.new_topic_visits_per_second_max": lambda b: b.shard.clients.broker.limits.new_topic_visits_per_second_max,
    "mqtt.tells_durability": lambda b: bool(b.policy.limits.durability),
    "log.linger_ms": lambda b: round(b.shard.writing.commit.linger * 1000),
    "log.pending_bytes_max": lambda b: b.shard.writing.backpressure.pending_bytes_max,
    "log.free_bytes_min": lambda b: b.shard.writing.admission.free_bytes_min,
    "log.free_percent_min": lambda b: b.shard.operation.disk.settings.percent,
    "log.wanted_free_percent_min": lambda b: b.shard.operation.disk.settings.wanted_percent,
    # [log] is what a stream inherits: seen in the stream that has no keys of its own.
    **{f"log.{name}": kept("main", name) for name in INHERITED if SECTIONS["log"][name].applies != RESTART},
    **{f"stream.{name}": kept("plant", name) for name in INHERITED if SECTIONS["log"][name].applies != RESTART},
    "auth.anonymous": lambda b: "yes" if b.policy.authenticator.anonymous else "no",
    "auth.methods": lambda b: [each.name for each in b.policy.authenticator.methods],
    "auth.password_file": lambda b: sorted(b.method("password").users),
    "auth.rules_file": lambda b: rules_of(b.policy.rules),
    "auth.token_keys_file": lambda b: [str(each.key) for each in b.method("token")._keys],
    "auth.token_issuer": claim("issuer"),
    "auth.token_audience": claim("audience"),
    "auth.token_user_claim": claim("user"),
    "auth.token_groups_claim": claim("groups"),
    "auth.token_client_id_claim": claim("client_id"),
    "auth.token_expiry_required": claim("expiry_required"),
    "auth.http_url": lambda b: b.method("http")._call.args[0],
    "auth.http_seconds_max": lambda b: b.method("http")._call.args[1],
    "auth.http_remember_seconds_max": lambda b: b.method("http")._verified.seconds_max,
    "auth.exact_refusals": lambda b: b.policy.exact_refusals,
    "auth.unauthenticated_connections_max": lambda b: b.shard.pump.pending_logins.count_max,
    "auth.address_unauthenticated_connections_max": lambda b: b.shard.pump.pending_logins.holder_count_max,
    "auth.unauthenticated_bytes_max": lambda b: b.shard.pump.pending_logins.bytes_max,
    "auth.user_connections_max": quota("connections_max"),
    "auth.user_sessions_max": quota("sessions_max"),
    "auth.user_topics_max": quota("topics_max"),
    "auth.user_messages_per_second_max": rate("sending", "_user", "messages"),
    "auth.user_bytes_per_second_max": rate("sending", "_user", "bytes"),
    "auth.user_replay_bytes_per_second_max": rate("replaying", "_user", "bytes"),
    "auth.remember_seconds_max": lambda b: b.method("password")._verified.seconds_max,
    "auth.guess_seconds_max": lambda b: b.shard.clients.auth_pool.guesses.seconds_max,
    "events.format": lambda b: [getattr(each, "__name__", "human") for each in structlog.get_config()["processors"]],
    "events.level": lambda b: structlog.get_config()["wrapper_class"].__name__,
    "trace.sample_every": sampler("every"),
    "trace.traces_per_second_max": sampler("per_second_max"),
    "listener.anonymous": lambda b: "yes" if b.policy.authenticator.anonymous else "no",
    "listener.methods": lambda b: [each.name for each in b.policy.authenticator.methods],
    "listener.password_file": lambda b: sorted(b.method("password").users),
    "listener.rules_file": lambda b: rules_of(b.policy.rules),
    **{
        f"listener.{name}": limit(name)
        for name in (
            "connect_seconds_max", "inflight_max", "maximum_qos", "receive_maximum", "subscriptions_max",
            "topic_alias_maximum",
        )
    },
    **{
        f"listener.{name}": lambda b, name=name: getattr(b.policy, name)
        for name in (
            "assigned_prefix", "certificate_as_user", "client_id_prefixes", "empty_client_id", "user_as_client_id",
        )
    },
    "listener.mqtt_versions": lambda b: sorted(b.policy.versions),
    "listener.connections_per_second_max": lambda b: b.rate.per_second,
    "listener.client_messages_per_second_max": rate("sending", "_client", "messages"),
    "listener.client_bytes_per_second_max": rate("sending", "_client", "bytes"),
    "listener.messages_per_second_max": rate("sending", "_everybody", "messages"),
    "listener.bytes_per_second_max": rate("sending", "_everybody", "bytes"),
    "listener.client_replay_bytes_per_second_max": rate("replaying", "_client", "bytes"),
    "listener.replay_bytes_per_second_max": rate("replaying", "_everybody", "bytes"),
}  # fmt: skip
IN_GATEWAY: dict[str, Look] = {
    "gateway.rules_file": lambda g: rules_of(g.context.rights.rules),
    "gateway.tokens_file": lambda g: sorted(each.name for each in g.context.rights.admission.tokens.values()),
    # What the endpoint that spans go to was made of (`tests.settings.probe`).
    "trace.otlp_endpoint": lambda g: g.exporter._endpoint.made_of[0].otlp_endpoint,
    "trace.headers_file": lambda g: g.exporter._endpoint.made_of[1],
    "trace.service_name": lambda g: g.exporter._endpoint.made_of[0].service_name,
}
IN_FLIGHT: dict[str, Look] = {
    "flight.anonymous": lambda calls: "yes" if calls._authenticator.anonymous else "no",
    "flight.password_file": lambda calls: sorted(
        user for each in calls._authenticator.methods if each.name == "password" for user in each.users
    ),
    "flight.rules_file": lambda calls: rules_of(calls._rules),
}
IN_GRPC: dict[str, Look] = {
    "grpc.anonymous": lambda calls: "yes" if calls._authenticator.anonymous else "no",
    "grpc.password_file": lambda calls: sorted(
        user for each in calls._authenticator.methods if each.name == "password" for user in each.users
    ),
}
IN_KAFKA: dict[str, Look] = {
    "kafka.anonymous": lambda calls: "yes" if calls._authenticator.anonymous else "no",
    "kafka.password_file": lambda calls: sorted(
        user for each in calls._authenticator.methods if each.name == "password" for user in each.users
    ),
    "kafka.rules_file": lambda calls: rules_of(calls._rules),
}
# The same keys as another process obeys them.
ALSO: dict[str, dict[str, Look]] = {
    "gateway": {
        "auth.guess_seconds_max": lambda g: g.context.rights.admission.guess_seconds_max,
        "events.level": lambda g: structlog.get_config()["wrapper_class"].__name__,
    },
    "flight": {
        "auth.guess_seconds_max": lambda calls: calls._guesses.seconds_max,
        "auth.exact_refusals": lambda calls: calls._exact,
        "events.level": lambda calls: structlog.get_config()["wrapper_class"].__name__,
    },
    "kafka": {
        "auth.guess_seconds_max": lambda calls: calls._guesses.seconds_max,
        "auth.exact_refusals": lambda calls: calls._exact,
        "events.level": lambda calls: structlog.get_config()["wrapper_class"].__name__,
    },
    "grpc": {
        "auth.guess_seconds_max": lambda calls: calls._guesses.seconds_max,
        "auth.exact_refusals": lambda calls: calls._exact,
        "events.level": lambda calls: structlog.get_config()["wrapper_class"].__name__,
    },
}


def seen(process: str, subject: Any) -> dict[str, object]:
    """Key -> what is in force there."""
    tables = {"broker": IN_BROKER, "gateway": IN_GATEWAY, "flight": IN_FLIGHT, "grpc": IN_GRPC, "kafka": IN_KAFKA}
    found: dict[str, object] = {}
    for key, look in (tables[process] | ALSO.get(process, {})).items():
        try:
            found[key] = look(subject)
        except Exception as fault:
            found[key] = f"cannot be seen: {fault!r}"  # which the test of this key says
    return found
