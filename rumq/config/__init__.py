"""The table of settings: every key with its type, unit, bounds, default and one line of why.

It is the flags, config.toml, the environment and the messages at once: `rumq.settings.load` reads the sources
against it, `rumq.settings.show` writes config.toml from it. Names carry their unit and bound last.
Refuses to know where a value came from, and what is done with it.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from rumq.config.access import Auth, Flight, Listener
from rumq.config.setting_types import DAY_SECONDS, GIB, KIB, MIB, choice, maybe_text, number, text

Durability: TypeAlias = Literal["process", "disk"]
SEGMENT_BYTES = number("a segment is sealed, and a new one begun, at this size", "bytes", 64 * KIB, 4 * GIB)
SEGMENT_SECONDS = number("a segment is also sealed at this age", "seconds", 1, 366 * DAY_SECONDS)
RETENTION_BYTES = number(
    "a partition's oldest sealed segments go while it is larger; 0 keeps all", "bytes", 0, 2**60
)
RETENTION_SECONDS = number(
    "sealed segments go when their newest record is older; 0 keeps all", "seconds", 0, 36_500 * DAY_SECONDS
)
Retention: TypeAlias = Literal["space", "forever"]
RETENTION = choice(
    '"space": the oldest sealed segments go when the disk has too little room; "forever": publishers are refused then'
)
TOPICS = number(
    "a message for a topic beyond these is refused (0x97); each costs memory", "topics", 1, 100_000_000
)
TOPICS_BYTES = number(
    "of the names of a stream's topics; a message for one more topic is refused (0x97); each is in memory and on disk",
    "bytes",
    64 * KIB,
    2**60,
)
RETAINED = number(
    "of each partition's retained messages, which are in memory; more are refused (0x97); 0: any",
    "bytes",
    0,
    2**60,
)
EXPORT_TO = maybe_text(
    "folder or URI where finished segments become Parquet files; empty: nowhere (docs/lake.md)"
)
DURABILITY = choice(
    'what an acknowledgement promises: "process" survives the death of rumqd, "disk" a power loss as well'
)


class Data(Struct, frozen=True, kw_only=True):
    """Where the log and the sessions live."""

    dir: Annotated[str, text("made if missing; one broker at a time holds it", 4096)] = "rumq-data"


class Shards(Struct, frozen=True, kw_only=True):
    """How many processes share the work."""

    count: Annotated[int, number("processes that share the work, best one a core", "processes", 1, 64)] = 1


class Log(Struct, frozen=True, kw_only=True):
    """What every stream inherits, and the memory of the log."""

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
        int,
        number("beyond retention, kept of each partition until it is exported", "bytes", 0, 2**60),
    ] = 0
    retain_for_sessions_bytes_max: Annotated[
        int,
        number(
            "beyond retention, kept of each partition for lasting sessions that have not had it",
            "bytes",
            0,
            2**60,
        ),
    ] = 0
    linger_ms: Annotated[
        int, number("how long QoS 0 records may wait to be written with others", "milliseconds", 0, 10_000)
    ] = 5
    pending_bytes_max: Annotated[
        int, number("unwritten records before publishers are slowed down", "bytes", 64 * KIB, 64 * GIB)
    ] = 64 * MIB
    free_percent_min: Annotated[
        float,
        number(
            "of what is free on the disk and what the log holds, kept free by letting the oldest segments go",
            "percent",
            0,
            95,
        ),
    ] = 15.0
    wanted_free_percent_min: Annotated[
        float,
        number("below this also what lasting sessions or the export have not had goes", "percent", 0, 95),
    ] = 5.0
    free_bytes_min: Annotated[
        int,
        number(
            "publishers are refused while less than this is free on the disk; on a small disk, a sixteenth of it",
            "bytes",
            0,
            64 * GIB,
        ),
    ] = 64 * MIB
    scrub_bytes_per_second: Annotated[
        int, number("how fast finished segments are read again to find damage", "bytes/s", 0, 64 * GIB)
    ] = 4 * MIB
    hot_bytes_max: Annotated[
        int,
        number("newest records kept in memory, so that live subscribers need no disk", "bytes", 0, 64 * GIB),
    ] = 64 * MIB


class Stream(Struct, frozen=True, kw_only=True):
    """Some topics, and how they are kept. A topic belongs to the first stream whose filters match it.

    What a stream leaves out it takes from [log]. Without one for "#", a stream "main" is added at the end.
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,63}\Z",
            description="names its directory; 1 to 64 of a-z, 0-9, _ and -",
            extra={"unit": "text of a-z, 0-9, _ and -, at most 64, beginning with a letter or digit"},
        ),
    ] = "main"
    filters: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="MQTT topic filters",
            extra={"unit": 'a list of MQTT topic filters, such as ["plant/#", "pump/+/state"]'},
        ),
    ] = ("#",)
    partitions: Annotated[
        int,
        number(
            "logs that share the stream's topics, each written by one shard; 0: as many as shards when it is made",
            "partitions",
            0,
            56,
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
    """What one client may do. MQTT 5 clients are told in CONNACK (MQTT 5.0, 3.2.2.3)."""

    packet_bytes_max: Annotated[
        int, number("largest packet taken from a client", "bytes", 128, 268_435_460)
    ] = 16 * MIB
    connect_bytes_max: Annotated[
        int,
        number(
            "largest packet of a client that has not logged in: CONNECT, with its will",
            "bytes",
            128,
            268_435_460,
        ),
    ] = 128 * KIB
    topic_bytes_max: Annotated[int, number("longest topic or filter, as UTF-8", "bytes", 1, 65_535)] = 4096
    topic_levels_max: Annotated[
        int, number('most levels of a topic or filter, which "/" parts', "levels", 1, 65_535)
    ] = 32
    receive_maximum: Annotated[
        int, number("QoS 1 and 2 messages a client may send unacknowledged", "messages", 1, 65_535)
    ] = 1024
    inflight_max: Annotated[
        int,
        number(
            "QoS 1 and 2 messages sent to a client unacknowledged, if it allows it", "messages", 1, 65_535
        ),
    ] = 1000
    keep_alive_seconds_max: Annotated[
        int,
        number(
            "longer keep-alives are shortened to this; below 65535 everyone has one", "seconds", 1, 65_535
        ),
    ] = 65_535
    topic_alias_maximum: Annotated[
        int, number("topic aliases a client may define; 0 for none", "aliases", 0, 65_535)
    ] = 64
    topic_alias_out_maximum: Annotated[
        int, number("topic aliases used towards a client, if it allows it", "aliases", 0, 65_535)
    ] = 16
    session_expiry_seconds_max: Annotated[
        int,
        number("how long a session outlives its connection; 4294967295 is for ever", "seconds", 0, 2**32 - 1),
    ] = 14 * DAY_SECONDS
    sessions_max: Annotated[
        int,
        number(
            "sessions that outlive connections, in each shard; a user, or an address, has half at most; more: 0x97",
            "sessions",
            2,
            100_000_000,
        ),
    ] = 200_000
    subscriptions_max: Annotated[
        int, number("subscriptions of one session", "subscriptions", 1, 10_000_000)
    ] = 10_000
    subscriptions_bytes_max: Annotated[
        int,
        number(
            "what the filters of one session may take in memory: 1 KiB each, 256 a level, three times their length",
            "bytes",
            64 * KIB,
            2**60,
        ),
    ] = 16 * MIB
    wildcard_levels_max: Annotated[
        int,
        number(
            'of all filters of one session: their levels from the first "+" or "#" on; a new topic is held against '
            "each of them",
            "levels",
            1,
            2**60,
        ),
    ] = 10_000
    backlog_records_max: Annotated[
        int,
        number(
            "a session further behind loses the oldest; 0 for whatever the log holds", "records", 0, 2**60
        ),
    ] = 0
    retain_available: Annotated[bool, choice("whether messages may be retained")] = True
    wildcard_available: Annotated[bool, choice('whether filters may hold "+" and "#"')] = True
    shared_available: Annotated[bool, choice("whether $share/<group>/<filter> is served")] = True
    subscription_identifiers_available: Annotated[bool, choice("whether subscriptions may be numbered")] = (
        True
    )
    publisher_available: Annotated[
        bool,
        choice("whether subscribers are told the client id that published, if they ask (rumq-publisher)"),
    ] = True
    maximum_qos: Annotated[int, number("highest QoS a client may publish with", "", 0, 2)] = 2
    client_id_bytes_max: Annotated[
        int, number("longest client identifier, as UTF-8", "bytes", 23, 65_535)
    ] = 1024
    reason_strings: Annotated[bool, choice("whether refusals say why in words (MQTT 5)")] = True
    tells_durability: Annotated[bool, choice("whether CONNACK says what an acknowledgement promises")] = True
    outbox_bytes_max: Annotated[
        int,
        number("bytes waiting for one client's socket before it reads on from the log", "bytes", 4096, GIB),
    ] = 256 * KIB


class Sys(Struct, frozen=True, kw_only=True):
    """What the broker tells clients of itself, in topics under $SYS; docs/sys.md lists them."""

    interval_seconds: Annotated[
        int, number("what has changed is published so often; 0 never", "seconds", 0, 86_400)
    ] = 10


class Events(Struct, frozen=True, kw_only=True):
    """What rumqd tells its operator on standard error; docs/events.md lists it."""

    format: Annotated[
        Literal["auto", "human", "json"], choice('"auto" is human on a terminal and JSON elsewhere')
    ] = "auto"
    level: Annotated[
        Literal["debug", "info", "warning", "error"], choice("the least important event that is written")
    ] = "info"
    lag_records_max: Annotated[
        int, number("a session that is further behind is told of; 0 never", "records", 0, 2**60)
    ] = 1_000_000
    lag_seconds_max: Annotated[
        int, number("likewise, by the age of what it has not had; 0 never", "seconds", 0, 3_650 * DAY_SECONDS)
    ] = 0


class Settings(Struct, frozen=True, kw_only=True):
    """All of it. `Settings()` is the broker that a bare `rumqd` runs."""

    listener: Listener = Listener()  # the first one
    more_listeners: tuple[Listener, ...] = ()
    auth: Auth = Auth()
    data: Data = Data()
    shards: Shards = Shards()
    log: Log = Log()
    stream: tuple[Stream, ...] = (Stream(),)  # at least one; the last resort takes "#"
    mqtt: Mqtt = Mqtt()
    sys: Sys = Sys()
    flight: Flight = Flight()
    events: Events = Events()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return (self.listener, *self.more_listeners)
