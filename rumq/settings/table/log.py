"""The table of settings, continued: [data], [shards], [log] and [[stream]]."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rumq.settings.types.setting_types import (
    DAY_SECONDS,
    GIB,
    KIB,
    LIVE,
    MIB,
    RESTART,
    choice,
    extra,
    maybe_text,
    number,
    text,
)

# fmt: off
# A table: a formatter would give each argument a line.


class Data(Struct, frozen=True, kw_only=True):
    """Storage of the log and the sessions."""

    dir: Annotated[
        str, text("data directory; created if missing; locked by the broker that uses it", RESTART, 4096)
    ] = "rumq-data"


class Shards(Struct, frozen=True, kw_only=True):
    """Broker processes."""

    count: Annotated[int, number("broker processes; best one per core", RESTART, "processes", 1, 64)] = 1


class Storage(Struct, frozen=True, kw_only=True):
    """How the records of a stream are stored: the keys that [log] and [[stream]] share."""

    durability: Annotated[
        Literal["process", "disk", "quorum"], choice(
            'an acknowledged message survives: "process": the death of rumqd; "disk": also a power loss; '
            '"quorum": in a cluster, also the loss of machines, as long as a majority of its copies is left', RESTART
        )
    ] = "disk"
    segment_bytes_max: Annotated[
        int, number("a segment is sealed when it reaches this size", RESTART, "bytes", 64 * KIB, 4 * GIB)
    ] = 64 * MIB
    segment_seconds_max: Annotated[
        int, number("a segment is sealed when it reaches this age", RESTART, "seconds", 1, 366 * DAY_SECONDS)
    ] = 3600
    retention: Annotated[
        Literal["space", "forever"], choice(
            'when the disk is nearly full: "space" deletes the oldest sealed segments, "forever" refuses publishers',
            LIVE
        )
    ] = "space"
    retention_bytes_max: Annotated[
        int, number(
            "the oldest sealed segments of a partition are deleted while it is larger; 0: no limit",
            LIVE, "bytes", 0, 2**60
        )
    ] = 0
    retention_seconds_max: Annotated[
        int, number(
            "a sealed segment is deleted when its newest record is older; 0: no limit",
            LIVE, "seconds", 0, 36_500 * DAY_SECONDS
        )
    ] = 0
    topics_max: Annotated[
        int, number(
            "topics of a stream; a message to one more is refused (0x97); each topic costs memory",
            LIVE, "topics", 1, 100_000_000
        )
    ] = 2_000_000
    topics_bytes_max: Annotated[
        int, number(
            "total length of a stream's topic names, in memory and on disk; a message to one more topic is refused "
            "(0x97)",
            LIVE, "bytes", 64 * KIB, 2**60
        )
    ] = 128 * MIB
    retained_bytes_max: Annotated[
        int, number(
            "retained messages of a partition, which are kept in memory; more are refused (0x97); 0: no limit",
            LIVE, "bytes", 0, 2**60
        )
    ] = GIB
    export_to: Annotated[
        str, maybe_text(
            "folder or URI to export sealed segments to, as Parquet files; empty: no export (docs/guides/lake.md)",
            RESTART
        )
    ] = ""


class Log(Storage, frozen=True, kw_only=True):
    """Defaults of every stream; disk space and memory of the log."""

    retain_for_export_bytes_max: Annotated[
        int, number("data per partition that retention keeps until it is exported", RESTART, "bytes", 0, 2**60)
    ] = 0
    retain_for_sessions_bytes_max: Annotated[
        int, number(
            "data per partition that retention keeps for persistent sessions that have not received it",
            RESTART, "bytes", 0, 2**60
        )
    ] = 0
    linger_ms: Annotated[
        int, number("longest time that QoS 0 records wait to be written in one group", LIVE, "milliseconds", 0, 10_000)
    ] = 5
    pending_bytes_max: Annotated[
        int, number(
            "unwritten records above which publishers are not read (backpressure)", LIVE, "bytes", 64 * KIB, 64 * GIB
        )
    ] = 64 * MIB
    free_percent_min: Annotated[
        float, number(
            "share of free space and log together that stays free, by deleting the oldest segments",
            LIVE, "percent", 0, 95
        )
    ] = 15.0
    wanted_free_percent_min: Annotated[
        float, number(
            "below this share, segments that persistent sessions or the export still need are deleted as well",
            LIVE, "percent", 0, 95
        )
    ] = 5.0
    free_bytes_min: Annotated[
        int, number(
            "publishers are refused while less disk space is free; at most a sixteenth of the disk",
            LIVE, "bytes", 0, 64 * GIB
        )
    ] = 64 * MIB
    scrub_bytes_per_second: Annotated[
        int, number(
            "rate at which sealed segments are read again to detect damage (scrubbing)",
            RESTART, "bytes/s", 0, 64 * GIB
        )
    ] = 4 * MIB
    pack_bytes_per_second: Annotated[
        int, number(
            "rate at which sealed segments of small chunks are read, to be written anew in large ones (packing); "
            "0: they stay; in a cluster only while all nodes with a copy are there",
            RESTART, "bytes/s", 0, 64 * GIB
        )
    ] = 16 * MIB
    hot_bytes_max: Annotated[
        int, number(
            "newest records kept in memory, from which live subscribers are served", RESTART, "bytes", 0, 64 * GIB
        )
    ] = 64 * MIB


class Stream(Storage, frozen=True, kw_only=True):
    """Some topics and how their records are stored. A topic belongs to the first stream whose filters match it.

    Missing keys are inherited from [log]. If no stream has the filter "#", a stream "main" with it is added at the end.
    """

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,63}\Z",
            description="name of the stream and of its directory",
            extra=extra("text of a-z, 0-9, _ and -, at most 64, beginning with a letter or digit", RESTART),
        ),
    ] = "main"
    filters: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="MQTT topic filters of the topics that belong to the stream",
            extra=extra('a list of MQTT topic filters, such as ["plant/#", "pump/+/state"]', RESTART),
        ),
    ] = ("#",)
    partitions: Annotated[
        int, number(
            "partitions, each written by one shard, between which topics are divided; 0: one per shard at creation",
            RESTART, "partitions", 0, 56
        )
    ] = 0
