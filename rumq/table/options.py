"""The options of format "rumq" for reading, checked: an unknown option is an error. docs/guides/spark.md.

The time is an argument."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter, parse_share
from rumq.table.broker_options import NAMES as OF_A_BROKER
from rumq.table.broker_options import maybe_flight_location
from rumq.table.errors import BadOption, UnknownOption
from rumq.table.flight_location import FlightLocation

EITHER = (
    "path", "subscribe", "subscribePattern", "assign", "stream", "startingOffsets", "startingTimestamp",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "failOnDataLoss", "minPartitions",
    "maxRecordsPerPartition", "includeHeaders", "properties", "schemaStyle", "lake", *OF_A_BROKER,
)  # fmt: skip
BATCH = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
STREAM = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")
# Options of the Kafka source that this one lacks, lower case.
NOT_HERE = {
    "kafka.bootstrap.servers": 'name its files, .load("rumq-data"), or .option("broker", "grpc://host:8815")',
    "password": "options are in the plans and logs of Spark: put it in a file, passwordFile",
    "token": "options are in the plans and logs of Spark: put it in a file, tokenFile",
    "group.id": "there are no groups: a query's offsets are in its checkpoint",
    "kafka.group.id": "there are no groups: a query's offsets are in its checkpoint",
    "groupidprefix": "there are no groups: a query's offsets are in its checkpoint",
    "auto.offset.reset": "set startingOffsets for the first offsets",
}
DELAYS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


LENGTH = re.compile(
    r"(?:interval\s+)?(?:\d+(?:\.\d+)?\s*(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+",
    re.ASCII,
)


@dataclass(frozen=True)
class Bound:
    """A starting or ending position. The first field that is set applies.

    time_us: of every partition; times_us: partition name -> µs since 1970; word: "earliest", "latest"; tail: the last
    so many records; lsns: partition name -> lsn, -2 for the first and -1 for the end
    """

    word: str
    tail: int | None = None
    lsns: Mapping[str, int] | None = None
    time_us: int | None = None
    times_us: Mapping[str, int] | None = None


@dataclass(frozen=True)
class TableOptions:
    path: str
    filters: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[str, ...] = ()
    stream: str | None = None
    start: Bound = field(default_factory=lambda: Bound("earliest"))
    end: Bound = field(default_factory=lambda: Bound("latest"))
    when_none: str = "latest"  # for a starting time after the last record
    fail_on_data_loss: bool = True
    partitions_min: int = 0  # 0: one per core
    records_max: int = 2_000_000
    properties: str = "array"
    style: str = "rumq"
    trigger_records_max: int = 1_000_000
    trigger_records_min: int = 0
    trigger_seconds_max: float = 900.0
    trigger_bytes_max: int = 0  # 0: no bound
    flight_location: FlightLocation | None = None  # the broker to read from, instead of path
    lake: str = ""  # "": the one in the log's export marker, if any; "none": no lake
    cores: int = 0  # that tasks are planned for, which is no option of a query; 0: those of the planner's machine


def parse(given: Mapping[str, str], *, now_us: int, streaming: bool | None = False) -> TableOptions:
    """streaming: None if the kind of query is not known yet. raises: BadOption, UnknownOption"""
    check_names(given, streaming)
    said = {name.lower(): value for name, value in given.items()}

    def get(name: str, default: str = "") -> str:
        return said.get(name.lower(), default)

    flight_location = maybe_flight_location(said)
    if not get("path") and flight_location is None:
        raise BadOption(
            "path", "", 'a data directory, as in .load("rumq-data"), or .option("broker", "grpc://host:8815")'
        )
    if get("lake") and flight_location is not None:
        raise BadOption("lake", get("lake"), "it with a path: a broker finds its lake itself")
    start = bound("starting", said, "earliest", now_us)
    end = bound("ending", said, "latest", now_us)
    if start.time_us is not None and end.time_us is not None and start.time_us > end.time_us:
        raise BadOption("endingTimestamp", get("endingTimestamp"), "a time after startingTimestamp")
    return TableOptions(
        get("path"),
        filters(get("subscribe")),
        pattern(said),
        partitions("assign", said),
        said.get("stream"),
        start,
        end,
        word(
            "startingOffsetsByTimestampStrategy",
            get("startingOffsetsByTimestampStrategy", "latest"),
            "latest",
            "earliest",
            "error",
        ),
        truth("failOnDataLoss", get("failOnDataLoss", "true")),
        positive("minPartitions", get("minPartitions", "1")) if "minpartitions" in said else 0,
        positive("maxRecordsPerPartition", get("maxRecordsPerPartition", "2000000")),
        properties(said),
        word("schemaStyle", get("schemaStyle", "rumq"), "rumq", "kafka"),
        positive("maxOffsetsPerTrigger", get("maxOffsetsPerTrigger", "1000000")),
        positive("minOffsetsPerTrigger", get("minOffsetsPerTrigger", "1")),
        seconds("maxTriggerDelay", get("maxTriggerDelay", "15m")),
        positive("maxBytesPerTrigger", get("maxBytesPerTrigger")) if "maxbytespertrigger" in said else 0,
        flight_location,
        get("lake"),
    )


def check_names(given: Mapping[str, str], streaming: bool | None) -> None:
    """raises: UnknownOption, with the nearest name or the reason"""
    known = {name.lower(): name for name in EITHER + BATCH + STREAM}
    stray = BATCH if streaming else STREAM if streaming is not None else ()
    other = {name.lower() for name in stray}
    for name in given:
        small = name.lower()
        if small in other:
            kind = "batch queries (read)" if streaming else "streams (readStream)"
            raise UnknownOption(name, f"it is for {kind}")
        if small in known:
            continue
        if small in NOT_HERE:
            raise UnknownOption(name, NOT_HERE[small])
        raise UnknownOption(name, near(small, known))


def near(name: str, known: Mapping[str, str]) -> str:
    """known: lower case -> its spelling"""
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {known[found[0]]}?" if found else f"there are {', '.join(known.values())}"


def bound(which: str, said: Mapping[str, str], default: str, now_us: int) -> Bound:
    """which: "starting" or "ending". Priority: a time, times by partition, offsets."""
    name = f"{which}Timestamp"
    if (value := said.get(name.lower())) is not None:
        return Bound(default, time_us=moment(name, value, now_us))
    name = f"{which}OffsetsByTimestamp"
    if (value := said.get(name.lower())) is not None:
        stamps = numbers(name, value, 'milliseconds since 1970, JSON such as {"main/g1/p0": 1790000000000}')
        return Bound(default, times_us={partition: ms * 1000 for partition, ms in stamps.items()})
    name = f"{which}Offsets"
    value = said.get(name.lower(), default)
    if value == "latest" or (value == "earliest" and which == "starting"):
        return Bound(value)
    if which == "starting":
        allowed = 'earliest, latest, tail:1000 (the last of each partition), or JSON such as {"main/g1/p0": 1000}'
        kind, _, count = value.partition(":")
        if kind == "tail" and count.isascii() and count.isdigit():
            return Bound(default, tail=int(count))
    else:
        allowed = 'latest, or JSON such as {"main/g1/p0": 1000}'
    return Bound(default, lsns=numbers(name, value, allowed, least=-2 if which == "starting" else -1))


def numbers(name: str, value: str, allowed: str, least: int = 0) -> dict[str, int]:
    """Partition name -> number. Accepts the form in checkpoints, too: {"v": 1, "lsn": {...}}."""
    try:
        parsed = json.loads(value)
        if isinstance(parsed, dict) and parsed.get("v") == 1 and "lsn" in parsed:
            parsed = parsed["lsn"]
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or any(type(n) is not int or n < least for n in parsed.values()):
        raise BadOption(name, value, allowed)
    return parsed


def moment(name: str, value: str, now_us: int) -> int:
    """µs since 1970 from milliseconds, an ISO time, or an age: -10m."""
    if value.isascii() and value.isdigit():
        return int(value) * 1000  # milliseconds, as in the Kafka source
    if (ago := re.fullmatch(r"-(\d+)(s|m|h|d)", value, re.ASCII)) is not None:
        return now_us - round(int(ago[1]) * DELAYS[ago[2]] * 1e6)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        allowed = "milliseconds since 1970, a time such as 2026-11-20T06:00:00Z, or how long ago: -10m"
        raise BadOption(name, value, allowed) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1_000_000)


def filters(value: str) -> tuple[str, ...]:
    found = tuple(f.strip() for f in value.split(",") if f.strip())
    for topic_filter in found:
        check_filter("subscribe", topic_filter)
    return found


def check_filter(option: str, topic_filter: str) -> None:
    """raises: BadOption"""
    try:
        shared = parse_share(topic_filter)
        check_topic_filter(topic_filter)
    except TopicFilterInvalid as fault:
        raise BadOption(option, topic_filter, f"MQTT topic filters ({fault})") from None
    if shared is not None:
        allowed = f"a filter without a share: Spark divides the work itself, write {shared[1]}"
        raise BadOption(option, topic_filter, allowed)


def pattern(said: Mapping[str, str]) -> str | None:
    value = said.get("subscribepattern")
    if value is None:
        return None
    if "subscribe" in said:
        raise BadOption("subscribePattern", value, "it or subscribe, not both")
    try:
        re.compile(value)
    except re.error as fault:
        raise BadOption("subscribePattern", value, f"a regular expression ({fault})") from None
    return value


def partitions(name: str, said: Mapping[str, str]) -> tuple[str, ...]:
    value = said.get(name)
    if value is None:
        return ()
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = None
    if not isinstance(parsed, list) or not parsed or not all(isinstance(p, str) for p in parsed):
        raise BadOption(name, value, 'names of partitions, JSON such as ["main/g1/p0", "main/g1/p3"]')
    return tuple(parsed)


def properties(said: Mapping[str, str]) -> str:
    value = said.get("properties")
    if value is not None:
        word("properties", value, "array", "map", "none")
    headers = said.get("includeheaders")
    if headers is None:
        return value or "array"
    included = truth("includeHeaders", headers)
    if value is not None and included == (value == "none"):
        raise BadOption(
            "includeHeaders",
            headers,
            f"a value that agrees with properties = {value}, or only one of the two",
        )
    return (value or "array") if included else "none"


def word(name: str, value: str, *allowed: str) -> str:
    if value not in allowed:
        raise BadOption(name, value, " or ".join(allowed))
    return value


def truth(name: str, value: str) -> bool:
    return word(name, value.lower(), "true", "false") == "true"


def positive(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and int(value)):
        raise BadOption(name, value, "a whole number, 1 or more")
    return int(value)


def seconds(name: str, value: str) -> float:
    found = re.fullmatch(r"(\d+)\s*(ms|s|m|min|h|d)", value, re.ASCII)
    if found is None:
        raise BadOption(name, value, "a time span such as 500ms, 30s or 15m")
    return int(found[1]) * DELAYS[found[2]]


def length(name: str, value: str) -> str:
    """A duration in Spark's form, "5 minutes", unchanged. raises: BadOption"""
    if LENGTH.fullmatch(value.strip().lower()) is None:
        raise BadOption(name, value, "a length of time such as 30 seconds, 5 minutes or 1 day")
    return value
