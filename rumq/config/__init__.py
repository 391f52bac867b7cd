"""The table of settings: every key with its type, unit, bounds, default and description.

Flags, config.toml, environment variables and error messages come from it: `rumq.settings.load` checks the sources
against it, `rumq.settings.show` writes config.toml from it. Names end in their unit and bound.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from rumq.config.access import Auth, Flight, Listener
from rumq.config.cluster import Cluster
from rumq.config.gateway import Gateway
from rumq.config.setting_types import DAY_SECONDS, GIB, KIB, MIB, choice, maybe_text, number, text
from rumq.config.trace import Trace

# fmt: off
# A table: a formatter would give each argument a line.
Durability: TypeAlias = Literal["process", "disk", "quorum"]
SEGMENT_BYTES = number("a segment is sealed when it reaches this size", "bytes", 64 * KIB, 4 * GIB)
SEGMENT_SECONDS = number("a segment is sealed when it reaches this age", "seconds", 1, 366 * DAY_SECONDS)
RETENTION_BYTES = number(
    "the oldest sealed segments of a partition are deleted while it is larger; 0: no limit", "bytes", 0, 2**60
)
RETENTION_SECONDS = number(
    "a sealed segment is deleted when its newest record is older; 0: no limit",
    "seconds",
    0,
    36_500 * DAY_SECONDS,
)
Retention: TypeAlias = Literal["space", "forever"]
RETENTION = choice(
    'when the disk is nearly full: "space" deletes the oldest sealed segments, "forever" refuses publishers'
)
TOPICS = number(
    "topics of a stream; a message to one more is refused (0x97); each topic costs memory",
    "topics",
    1,
    100_000_000,
)
TOPICS_BYTES = number(
    "total length of a stream's topic names, in memory and on disk; a message to one more topic is refused (0x97)",
    "bytes",
    64 * KIB,
    2**60,
)
RETAINED = number(
    "retained messages of a partition, which are kept in memory; more are refused (0x97); 0: no limit",
    "bytes",
    0,
    2**60,
)
EXPORT_TO = maybe_text(
    "folder or URI to export sealed segments to, as Parquet files; empty: no export (docs/lake.md)"
)
DURABILITY = choice(
    'an acknowledged message survives: "process": the death of rumqd; "disk": also a power loss; '
    '"quorum": in a cluster, also the loss of machines, as long as a majority of its copies is left'
)


class Data(Struct, frozen=True, kw_only=True):
    """Storage of the log and the sessions."""

    dir: Annotated[
        str, text("data directory; created if missing; locked by the broker that uses it", 4096)
    ] = "rumq-data"


class Shards(Struct, frozen=True, kw_only=True):
    """Broker processes."""

    count: Annotated[int, number("broker processes; best one per core", "processes", 1, 64)] = 1


class Log(Struct, frozen=True, kw_only=True):
    """Defaults of every stream; disk space and memory of the log."""

    durability: Annotated[Durability, DURABILITY] = "disk"
    segment_bytes_max: Annotated[int, SEGMENT_BYTES] = 64 * MIB
    segment_seconds_max: Annotated[int, SEGMENT_SECONDS] = 3600
    retention: Annotated[Retention, RETENTION] = "space"
    retention_bytes_max: Annotated[int, RETENTION_BYTES] = 0
    retention_seconds_max: Annotated[int, RETENTION_SECONDS] = 0
    topics_max: Annotated[int, TOPICS] = 2_000_000
    topics_bytes_max: Annotated[int, TOPICS_BYTES] = 128 * MIB
    retained_bytes_max: Annotated[int, RETAINED] = GIB
    export_to: Annotated[str, EXPORT_TO] = ""
    retain_for_export_bytes_max: Annotated[
        int, number("data per partition that retention keeps until it is exported", "bytes", 0, 2**60)
    ] = 0
    retain_for_sessions_bytes_max: Annotated[
        int,
        number(
            "data per partition that retention keeps for persistent sessions that have not received it",
            "bytes", 0, 2**60
        ),
    ] = 0
    linger_ms: Annotated[
        int, number("longest time that QoS 0 records wait to be written in one group", "milliseconds", 0, 10_000)
    ] = 5
    pending_bytes_max: Annotated[
        int,
        number(
            "unwritten records above which publishers are not read (backpressure)",
            "bytes", 64 * KIB, 64 * GIB
        ),
    ] = 64 * MIB
    free_percent_min: Annotated[
        float,
        number(
            "share of free space and log together that stays free, by deleting the oldest segments",
            "percent", 0, 95
        ),
    ] = 15.0
    wanted_free_percent_min: Annotated[
        float,
        number(
            "below this share, segments that persistent sessions or the export still need are deleted as well",
            "percent", 0, 95
        ),
    ] = 5.0
    free_bytes_min: Annotated[
        int,
        number(
            "publishers are refused while less disk space is free; at most a sixteenth of the disk",
            "bytes", 0, 64 * GIB
        ),
    ] = 64 * MIB
    scrub_bytes_per_second: Annotated[
        int,
        number("rate at which sealed segments are read again to detect damage (scrubbing)", "bytes/s", 0, 64 * GIB),
    ] = 4 * MIB
    hot_bytes_max: Annotated[
        int, number("newest records kept in memory, from which live subscribers are served", "bytes", 0, 64 * GIB)
    ] = 64 * MIB


class Stream(Struct, frozen=True, kw_only=True):
    """Some topics and how their records are stored. A topic belongs to the first stream whose filters match it.

    Missing keys are inherited from [log]. If no stream has the filter "#", a stream "main" with it is added at the end.
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,63}\Z",
            description="name of the stream and of its directory",
            extra={"unit": "text of a-z, 0-9, _ and -, at most 64, beginning with a letter or digit"},
        ),
    ] = "main"
    filters: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="MQTT topic filters of the topics that belong to the stream",
            extra={"unit": 'a list of MQTT topic filters, such as ["plant/#", "pump/+/state"]'},
        ),
    ] = ("#",)
    partitions: Annotated[
        int,
        number(
            "partitions, each written by one shard, between which topics are divided; 0: one per shard at creation",
            "partitions", 0, 56
        ),
    ] = 0
    durability: Annotated[Durability, DURABILITY] = "disk"
    segment_bytes_max: Annotated[int, SEGMENT_BYTES] = 64 * MIB
    segment_seconds_max: Annotated[int, SEGMENT_SECONDS] = 3600
    retention: Annotated[Retention, RETENTION] = "space"
    retention_bytes_max: Annotated[int, RETENTION_BYTES] = 0
    retention_seconds_max: Annotated[int, RETENTION_SECONDS] = 0
    topics_max: Annotated[int, TOPICS] = 2_000_000
    topics_bytes_max: Annotated[int, TOPICS_BYTES] = 128 * MIB
    retained_bytes_max: Annotated[int, RETAINED] = GIB
    export_to: Annotated[str, EXPORT_TO] = ""


class Mqtt(Struct, frozen=True, kw_only=True):
    """Limits of the protocol for each client. CONNACK announces them to MQTT 5 clients (MQTT 5.0, 3.2.2.3)."""

    packet_bytes_max: Annotated[
        int, number("largest packet accepted from a client", "bytes", 128, 268_435_460)
    ] = 16 * MIB
    connect_bytes_max: Annotated[
        int, number("largest packet accepted before login: CONNECT, including its will", "bytes", 128, 268_435_460)
    ] = 128 * KIB
    topic_bytes_max: Annotated[int, number("longest topic name or topic filter, in UTF-8", "bytes", 1, 65_535)] = 4096
    topic_levels_max: Annotated[
        int, number('most levels of a topic name or topic filter, separated by "/"', "levels", 1, 65_535)
    ] = 32
    receive_maximum: Annotated[
        int,
        number(
            "QoS 1 and 2 messages that a client may send before they are acknowledged (Receive Maximum)",
            "messages", 1, 65_535
        ),
    ] = 1024
    inflight_max: Annotated[
        int,
        number(
            "QoS 1 and 2 messages sent before the client acknowledges; at most its Receive Maximum (in-flight window)",
            "messages", 1, 65_535
        ),
    ] = 1000
    keep_alive_seconds_max: Annotated[
        int,
        number(
            "longest keep-alive; longer ones are shortened; below 65535, a client without keep-alive gets this one",
            "seconds", 1, 65_535
        ),
    ] = 65_535
    topic_alias_maximum: Annotated[
        int, number("topic aliases that a client may define; 0: none", "aliases", 0, 65_535)
    ] = 64
    topic_alias_out_maximum: Annotated[
        int,
        number(
            "topic aliases that the broker defines for a client, at most its Topic Alias Maximum",
            "aliases", 0, 65_535
        ),
    ] = 16
    session_expiry_seconds_max: Annotated[
        int,
        number(
            "longest Session Expiry Interval; longer ones are shortened; 4294967295: sessions may never expire",
            "seconds", 0, 2**32 - 1
        ),
    ] = 14 * DAY_SECONDS
    sessions_max: Annotated[
        int,
        number(
            "persistent sessions per shard, of which a user, or an address, may have half; more are refused (0x97)",
            "sessions", 2, 100_000_000
        ),
    ] = 200_000
    subscriptions_max: Annotated[int, number("subscriptions of a session", "subscriptions", 1, 10_000_000)] = 10_000
    subscriptions_bytes_max: Annotated[
        int,
        number(
            "memory of a session's filters, estimated as 1 KiB each, 256 bytes per level and three times the length",
            "bytes", 64 * KIB, 2**60
        ),
    ] = 16 * MIB
    wildcard_levels_max: Annotated[
        int,
        number(
            'levels from the first "+" or "#" on, summed over a session\'s filters; '
            "a new topic is matched against each of them",
            "levels", 1, 2**60
        ),
    ] = 10_000
    all_subscriptions_bytes_max: Annotated[
        int,
        number(
            "the same memory for all sessions of a shard, of which a user, or an address, may have half",
            "bytes", 128 * KIB, 2**60
        ),
    ] = 2 * GIB
    all_wildcard_levels_max: Annotated[
        int,
        number(
            "the same levels for all sessions of a shard, of which a user, or an address, may have half",
            "levels", 2, 2**60
        ),
    ] = 1_000_000
    new_topics_per_second_max: Annotated[
        int,
        number(
            "topics that a client may create; one that creates more is read later; 0: no limit",
            "topics/s", 0, 10**9
        ),
    ] = 100_000
    new_topic_visits_per_second_max: Annotated[
        int,
        number(
            "filter nodes that the new topics of a user, or an address, may have visited, beyond 64 each, and apart "
            "from that those that topics matched again for its subscriptions have; beyond it clients with new topics, "
            "or that subscribe, are read later; 0: no limit",
            "visits/s", 0, 10**12
        ),
    ] = 200_000
    backlog_records_max: Annotated[
        int,
        number(
            "longest backlog of a session: one further behind skips the oldest records; 0: whatever the log holds",
            "records", 0, 2**60
        ),
    ] = 0
    retain_available: Annotated[bool, choice("retained messages are accepted")] = True
    wildcard_available: Annotated[bool, choice('filters may contain "+" and "#"')] = True
    shared_available: Annotated[bool, choice("shared subscriptions ($share/<group>/<filter>) are accepted")] = True
    subscription_identifiers_available: Annotated[bool, choice("subscription identifiers are accepted")] = True
    publisher_available: Annotated[
        bool, choice("subscribers that ask for it receive the publisher's client id (rumq-publisher)")
    ] = True
    maximum_qos: Annotated[int, number("highest QoS of published messages (Maximum QoS)", "", 0, 2)] = 2
    client_id_bytes_max: Annotated[int, number("longest client identifier, in UTF-8", "bytes", 23, 65_535)] = 1024
    reason_strings: Annotated[
        bool, choice("refusals carry a Reason String (MQTT 5), acknowledgements for clients that ask for it")
    ] = True
    tells_durability: Annotated[
        bool, choice("CONNACK announces the durability of acknowledged messages to clients that ask (rumq-durability)")
    ] = True
    outbox_bytes_max: Annotated[
        int,
        number(
            "output buffered for a client's socket; beyond it the client is served from the log once the socket drains",
            "bytes", 4096, GIB
        ),
    ] = 256 * KIB


class Sys(Struct, frozen=True, kw_only=True):
    """Status topics under $SYS; docs/sys.md lists them."""

    interval_seconds: Annotated[
        int, number("interval at which changed values are published; 0: never", "seconds", 0, 86_400)
    ] = 10


class Events(Struct, frozen=True, kw_only=True):
    """Events on standard error, rumqd's log for the operator; docs/events.md lists them."""

    format: Annotated[
        Literal["auto", "human", "json"], choice('output format; "auto": human on a terminal, otherwise JSON')
    ] = "auto"
    level: Annotated[Literal["debug", "info", "warning", "error"], choice("lowest level that is written")] = "info"
    lag_records_max: Annotated[
        int, number("a session with a longer backlog is reported (consumer.lagging); 0: never", "records", 0, 2**60)
    ] = 1_000_000
    lag_seconds_max: Annotated[
        int,
        number(
            "a session whose oldest undelivered record is older is reported (consumer.lagging); 0: never",
            "seconds", 0, 3_650 * DAY_SECONDS
        ),
    ] = 0


class Settings(Struct, frozen=True, kw_only=True):
    """All settings. `Settings()` has the defaults, with which a bare `rumqd` runs."""

    listener: Listener = Listener()
    more_listeners: tuple[Listener, ...] = ()
    auth: Auth = Auth()
    data: Data = Data()
    shards: Shards = Shards()
    cluster: Cluster = Cluster()
    log: Log = Log()
    stream: tuple[Stream, ...] = (Stream(),)  # at least one, and one with the filter "#"
    mqtt: Mqtt = Mqtt()
    sys: Sys = Sys()
    flight: Flight = Flight()
    gateway: Gateway = Gateway()
    trace: Trace = Trace()
    events: Events = Events()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return (self.listener, *self.more_listeners)
