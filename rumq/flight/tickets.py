"""Tickets and commands: requests of a reader, as JSON, checked before a file is opened.

A ticket names a range of one partition. It is neither secret nor permission: every call is authorized."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from rumq.flight.errors import BadRequest
from rumq.flight.schema import ALL, NAMES
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter, parse_share
from rumq.table.options import TableOptions, near, parse

BYTES_MAX = 1 << 20
T = TypeVar("T")
LSN_MAX = 2**63 - 1
# Stream names as in rumq.settings.table; the broker's own begin with "_" and are not served.
PARTITION = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}/g[0-9]{1,9}/p[0-9]{1,9}")
# Options of the Spark source that a command may have; the others concern Spark itself.
OF_A_COMMAND = (
    "assign", "stream", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy", "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp",
    "failOnDataLoss", "minPartitions", "maxRecordsPerPartition",
)  # fmt: skip
OWN = ("topics", "columns", "properties")


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Records start..end of a partition with these topics (MQTT filters; none: all).

    columns: of `schema.ALL`; properties: the type of that column; failOnDataLoss: false skips unreadable records
    """

    partition: str
    start: int
    end: int
    columns: tuple[str, ...] = NAMES
    topics: tuple[str, ...] = ()
    properties: Literal["array", "map"] = "array"
    failOnDataLoss: bool = True

    def to_bytes(self) -> bytes:
        return msgspec.json.encode(self)


class ReadCommand(NamedTuple):
    """A command of `get_flight_info`. options: of the Spark source, of this data directory"""

    options: TableOptions
    columns: tuple[str, ...]
    topics: tuple[str, ...]
    properties: Literal["array", "map"]

    def ticket(self, partition: str, start: int, end: int) -> Ticket:
        return Ticket(
            partition=partition, start=start, end=end, columns=self.columns, topics=self.topics,
            properties=self.properties, failOnDataLoss=self.options.fail_on_data_loss,
        )  # fmt: skip


class FindTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of the action of this name. ts_us: µs since 1970; behind_lost: see `PartitionView.find_time`"""

    partition: str
    ts_us: int
    behind_lost: bool = False


class EndWithin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Likewise: the end of `bytes_max` bytes of the log from `start`, at most `end`"""

    partition: str
    start: int
    end: int
    bytes_max: int


class SegmentsBelow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of the action `segments`: by partition, the segment of the last record below an lsn"""

    below: dict[str, int]


def parse_ticket(data: bytes) -> Ticket:
    """raises: BadRequest"""
    ticket = decoded("ticket", data, Ticket)
    if PARTITION.fullmatch(ticket.partition) is None:
        raise BadRequest("ticket", f"partition {ticket.partition!r}: expected a name such as main/g1/p0")
    if not 0 <= ticket.start <= ticket.end <= LSN_MAX:
        raise BadRequest("ticket", f"start {ticket.start}, end {ticket.end}: expected 0 <= start <= end")
    check_columns("ticket", ticket.columns)
    check_filters("ticket", ticket.topics)
    return ticket


def parse_command(data: bytes, path: str, now_us: int) -> ReadCommand:
    """path: the data directory. raises: BadRequest, BadOption, UnknownOption"""
    said = decoded("command", data or b"{}", dict[str, Any])
    known = {name.lower(): name for name in (*OWN, *OF_A_COMMAND)}
    for name in said:
        if name not in known.values():
            raise BadRequest("command", f"there is no key {name!r}: {near(name.lower(), known)}")
    columns = listed("columns", said.get("columns", list(NAMES)))
    topics = listed("topics", said.get("topics", []))
    properties = said.get("properties", "array")
    if properties not in ("array", "map"):
        raise BadRequest("command", f"properties = {properties!r}: expected array or map")
    check_columns("command", columns)
    check_filters("command", topics)
    options = {name: as_text(value) for name, value in said.items() if name not in OWN}
    return ReadCommand(parse({"path": path, **options}, now_us=now_us), columns, topics, properties)


def decoded(what: str, data: bytes, kind: type[T]) -> T:
    if len(data) > BYTES_MAX:
        raise BadRequest(what, f"{len(data)} bytes: expected at most {BYTES_MAX}")
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as fault:
        raise BadRequest(what, str(fault)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest(what, "expected JSON") from None


def listed(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadRequest("command", f"{name}: expected a list of texts")
    return tuple(value)


def as_text(value: object) -> str:
    """A JSON value in the form of Spark's option."""
    return value if isinstance(value, str) else json.dumps(value)


def check_columns(what: str, columns: Sequence[str]) -> None:
    if not columns or len(set(columns)) < len(columns):
        raise BadRequest(what, "columns: expected one or more, each once")
    for name in columns:
        if name not in ALL:
            raise BadRequest(what, f"there is no column {name!r}: {near(name, {name: name for name in ALL})}")


def check_filters(what: str, topics: Sequence[str]) -> None:
    for topic_filter in topics:
        try:
            shared = parse_share(topic_filter)
            check_topic_filter(topic_filter)
        except TopicFilterInvalid as fault:
            raise BadRequest(what, f"topics: expected MQTT topic filters ({fault})") from None
        if shared is not None:
            raise BadRequest(what, f"topics: expected filters without a share, {shared[1]}")
