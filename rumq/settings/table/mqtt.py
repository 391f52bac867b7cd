"""The table of settings, continued: [mqtt]."""

from typing import Annotated

from msgspec import Struct

from rumq.settings.types.setting_types import (
    DAY_SECONDS,
    GIB,
    KIB,
    LIVE,
    MIB,
    NEW_CONNECTIONS,
    RESTART,
    choice,
    number,
)

# fmt: off
# A table: a formatter would give each argument a line.


class Mqtt(Struct, frozen=True, kw_only=True):
    """Limits of the protocol for each client. CONNACK announces them to MQTT 5 clients (MQTT 5.0, 3.2.2.3)."""

    packet_bytes_max: Annotated[
        int, number("largest packet accepted from a client", NEW_CONNECTIONS, "bytes", 20, 268_435_460)
    ] = 16 * MIB
    connect_bytes_max: Annotated[
        int, number(
            "largest packet accepted before login: CONNECT, including its will",
            NEW_CONNECTIONS, "bytes", 128, 268_435_460
        )
    ] = 128 * KIB
    topic_bytes_max: Annotated[
        int, number("longest topic name or topic filter, in UTF-8", NEW_CONNECTIONS, "bytes", 1, 65_535)
    ] = 4096
    topic_levels_max: Annotated[
        int, number(
            'most levels of a topic name or topic filter, separated by "/"', NEW_CONNECTIONS, "levels", 1, 65_535
        )
    ] = 32
    receive_maximum: Annotated[
        int, number(
            "QoS 1 and 2 messages that a client may send before they are acknowledged (Receive Maximum)",
            NEW_CONNECTIONS, "messages", 1, 65_535
        )
    ] = 1024
    inflight_max: Annotated[
        int, number(
            "QoS 1 and 2 messages sent before the client acknowledges; at most its Receive Maximum (in-flight window)",
            NEW_CONNECTIONS, "messages", 1, 65_535
        )
    ] = 1000
    keep_alive_seconds_max: Annotated[
        int, number(
            "longest keep-alive; longer ones are shortened; below 65535, a client without keep-alive gets this one",
            NEW_CONNECTIONS, "seconds", 1, 65_535
        )
    ] = 65_535
    keep_alive_refused: Annotated[
        bool, choice(
            "refuse clients of MQTT 3 with a longer keep-alive than that (identifier rejected): they cannot be told of "
            "another one, and keep their own otherwise", NEW_CONNECTIONS
        )
    ] = False
    topic_alias_maximum: Annotated[
        int, number("topic aliases that a client may define; 0: none", NEW_CONNECTIONS, "aliases", 0, 65_535)
    ] = 64
    topic_alias_out_maximum: Annotated[
        int, number(
            "topic aliases that the broker defines for a client, at most its Topic Alias Maximum",
            NEW_CONNECTIONS, "aliases", 0, 65_535
        )
    ] = 16
    session_expiry_seconds_max: Annotated[
        int, number(
            "longest Session Expiry Interval; longer ones are shortened; 4294967295: sessions may never expire",
            NEW_CONNECTIONS, "seconds", 0, 2**32 - 1
        )
    ] = 14 * DAY_SECONDS
    sessions_max: Annotated[
        int, number(
            "persistent sessions per shard, of which a user, or an address, may have half; more are refused (0x97)",
            NEW_CONNECTIONS, "sessions", 2, 100_000_000
        )
    ] = 200_000
    subscriptions_max: Annotated[
        int, number("subscriptions of a session", NEW_CONNECTIONS, "subscriptions", 1, 10_000_000)
    ] = 10_000
    subscriptions_bytes_max: Annotated[
        int, number(
            "memory of a session's filters, estimated as 1 KiB each, 256 bytes per level and three times the length",
            NEW_CONNECTIONS, "bytes", 64 * KIB, 2**60
        )
    ] = 16 * MIB
    wildcard_levels_max: Annotated[
        int, number(
            'levels from the first "+" or "#" on, summed over a session\'s filters; '
            "a new topic is matched against each of them", NEW_CONNECTIONS, "levels", 1, 2**60
        )
    ] = 10_000
    all_subscriptions_bytes_max: Annotated[
        int, number(
            "the same memory for all sessions of a shard, of which a user, or an address, may have half",
            NEW_CONNECTIONS, "bytes", 128 * KIB, 2**60
        )
    ] = 2 * GIB
    all_wildcard_levels_max: Annotated[
        int, number(
            "the same levels for all sessions of a shard, of which a user, or an address, may have half",
            NEW_CONNECTIONS, "levels", 2, 2**60
        )
    ] = 1_000_000
    new_topics_per_second_max: Annotated[
        int, number(
            "topics that a client may create; one that creates more is read later; 0: no limit",
            LIVE, "topics/s", 0, 10**9
        )
    ] = 100_000
    new_topic_visits_per_second_max: Annotated[
        int, number(
            "filter nodes that the new topics of a user, or an address, may have visited, beyond 64 each, and apart "
            "from that those that topics matched again for its subscriptions have; beyond it clients with new topics, "
            "or that subscribe, are read later; 0: no limit", LIVE, "visits/s", 0, 10**12
        )
    ] = 200_000
    backlog_records_max: Annotated[
        int, number(
            "longest backlog of a session: one further behind skips the oldest records; 0: whatever the log holds",
            RESTART, "records", 0, 2**60
        )
    ] = 0
    retain_available: Annotated[bool, choice("retained messages are accepted", NEW_CONNECTIONS)] = True
    wildcard_available: Annotated[bool, choice('filters may contain "+" and "#"', NEW_CONNECTIONS)] = True
    shared_available: Annotated[
        bool, choice("shared subscriptions ($share/<group>/<filter>) are accepted", NEW_CONNECTIONS)
    ] = True
    subscription_identifiers_available: Annotated[
        bool, choice("subscription identifiers are accepted", NEW_CONNECTIONS)
    ] = True
    publisher_available: Annotated[
        bool, choice("subscribers that ask for it receive the publisher's client id (rumq-publisher)", NEW_CONNECTIONS)
    ] = True
    maximum_qos: Annotated[
        int, number("highest QoS of published messages (Maximum QoS)", NEW_CONNECTIONS, "", 0, 2)
    ] = 2
    client_id_bytes_max: Annotated[
        int, number("longest client identifier, in UTF-8", NEW_CONNECTIONS, "bytes", 23, 65_535)
    ] = 1024
    reason_strings: Annotated[
        bool, choice(
            "refusals carry a Reason String (MQTT 5), acknowledgements for clients that ask for it", NEW_CONNECTIONS
        )
    ] = True
    tells_durability: Annotated[
        bool, choice(
            "CONNACK announces the durability of acknowledged messages to clients that ask (rumq-durability)",
            NEW_CONNECTIONS
        )
    ] = True
    outbox_bytes_max: Annotated[
        int, number(
            "output buffered for a client's socket; beyond it the client is served from the log once the socket drains",
            RESTART, "bytes", 4096, GIB
        )
    ] = 256 * KIB
