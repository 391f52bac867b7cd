"""Where a subscription begins: of each topic filter of the map, in each partition, and the cursor behind what was sent.

A record is wanted if it is at or behind the begin of any filter that matches its topic. A cursor is a place in each
partition, and the begins that lie behind it: as base64 of JSON. Knows no socket."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec

from commitlog.read.partition_view import PartitionView
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import SHARE_PREFIX, check_topic_filter, has_wildcard, is_reserved, matches
from rumq.services.contract.faults import CallFault
from rumq.services.generated import broker_service_pb2 as pb
from rumq.services.kernels.record_messages import NEVER

FILTERS_MAX = 64
CURSOR_BYTES_MAX = 1 << 16
REPLAY_PREFIX = "$log/"
Lsn = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Place = str | tuple[str, int]  # "earliest", "latest", ("time", µs since 1970), ("offset", n)


class Cursor(msgspec.Struct):
    """at: the next lsn of each partition; begins: filter -> partition -> lsn, of those behind `at`; offsets: filter ->
    first offset"""

    at: dict[str, Lsn]
    begins: dict[str, dict[str, Lsn]] = {}
    offsets: dict[str, Lsn] = {}


class FilterStart(NamedTuple):
    """Of one filter. lsns: by partition; offset: of its one topic, from which on records count whatever their lsn"""

    lsns: Mapping[str, int]
    offset: int = NEVER


def places_of(request: pb.SubscribeRequest) -> dict[str, Place]:
    """Of each filter. raises: CallFault for an invalid one"""
    if not request.topics:
        raise CallFault("ARGUMENT_INVALID", "topics is empty: name a topic or a topic filter, and where it begins")
    if len(request.topics) > FILTERS_MAX:
        raise CallFault(
            "REQUEST_TOO_LARGE", f"topics has {len(request.topics)} entries, and {FILTERS_MAX} are taken: use filters",
            limit=FILTERS_MAX,
        )  # fmt: skip
    return {topic_filter: place_of(topic_filter, start) for topic_filter, start in request.topics.items()}


def place_of(topic_filter: str, start: pb.Start) -> Place:
    """raises: CallFault"""
    if topic_filter.startswith((SHARE_PREFIX, REPLAY_PREFIX)):
        raise CallFault(
            "TOPIC_INVALID", f"{topic_filter[:80]!r}: $share/ and $log/ are not taken here; `Start` says where to begin"
        )
    try:
        check_topic_filter(topic_filter)
        if is_reserved(topic_filter):
            raise TopicFilterInvalid("what the broker says under $SYS is not stored: MQTT has it")
    except TopicFilterInvalid as fault:
        raise CallFault("TOPIC_INVALID", str(fault)) from None
    kind = start.WhichOneof("from")
    if kind == "id":
        if has_wildcard(topic_filter):
            raise CallFault("ARGUMENT_INVALID", "an id counts the records of one topic, and the filter has a wildcard")
        if not 1 <= start.id < NEVER:
            raise CallFault("ARGUMENT_INVALID", f"ids begin at 1: {start.id} is none")
        return "offset", start.id - 1
    if kind == "time_us":
        if start.time_us < 0:
            raise CallFault("ARGUMENT_INVALID", f"time_us = {start.time_us}: expected microseconds since 1970")
        return "time", start.time_us
    if kind == "position" and start.position not in pb.Position.values():
        raise CallFault("ARGUMENT_INVALID", f"position = {start.position}: there is no such value")
    return "earliest" if start.position == pb.POSITION_EARLIEST else "latest"


def begins_of(places: Mapping[str, Place], views: Iterable[PartitionView]) -> dict[str, FilterStart]:
    """Blocks: searches files. raises: OSError"""
    known = list(views)
    times: dict[tuple[str, int], int] = {}
    found = {}
    for topic_filter, place in places.items():
        lsns = {}
        for view in known:
            if isinstance(place, tuple) and place[0] == "time":
                key = view.name, place[1]
                if key not in times:
                    times[key] = view.find_time(place[1])
                lsns[view.name] = times[key]
            elif isinstance(place, tuple):
                lsns[view.name] = view.find_offset(topic_filter.encode(), place[1])
            else:
                lsns[view.name] = view.end_lsn if place == "latest" else view.first_lsn
        if isinstance(place, tuple) and place[0] == "offset":
            # Of its topic the offset counts, also of records that are yet to come; its lsn is where to read from.
            found[topic_filter] = FilterStart(lsns, place[1])
        else:
            found[topic_filter] = FilterStart(lsns)
    return found


class WantedRecords:
    """Which records a subscription wants, and where it stands. at: the next lsn of each partition"""

    def __init__(self, begins: Mapping[str, FilterStart], at: dict[str, int]) -> None:
        self._begins, self.at = begins, at

    @classmethod
    def from_begins(cls, begins: Mapping[str, FilterStart]) -> WantedRecords:
        at: dict[str, int] = {}
        for begin in begins.values():
            for name, lsn in begin.lsns.items():
                at[name] = min(at.get(name, NEVER), lsn)
        return cls(begins, at)

    @classmethod
    def from_cursor(cls, text: str, filters: Iterable[str]) -> WantedRecords:
        """raises: CallFault"""
        try:
            if len(text) > CURSOR_BYTES_MAX:
                raise ValueError
            cursor = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=Cursor)
        except (ValueError, binascii.Error):
            raise CallFault("CURSOR_INVALID", "the cursor is none that Subscribe has given") from None
        begins = {}
        for topic_filter in filters:
            offset = cursor.offsets.get(topic_filter, NEVER)
            later = cursor.begins.get(topic_filter, {})
            begins[topic_filter] = FilterStart({name: later.get(name, 0) for name in cursor.at}, offset)
        return cls(begins, cursor.at)

    def text(self) -> str:
        """The cursor."""
        later = {}
        for topic_filter, begin in self._begins.items():
            if begin.offset == NEVER:
                left = {name: lsn for name, lsn in begin.lsns.items() if lsn > self.at.get(name, 0)}
                if left:
                    later[topic_filter] = left
        offsets = {name: begin.offset for name, begin in self._begins.items() if begin.offset != NEVER}
        cursor = Cursor(self.at, later, offsets)
        return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()

    def from_where(self, topic: str, partition: str, may_read: Callable[[str], bool]) -> tuple[int, int] | None:
        """From which lsn, and from which offset on records of a topic are wanted; either is enough. None: none is.

        A partition that is new since the subscription began is wanted from its begin."""
        from_lsn = from_offset = NEVER
        for topic_filter, begin in self._begins.items():
            if matches(topic_filter, topic):
                if begin.offset != NEVER:
                    from_offset = min(from_offset, begin.offset)
                else:
                    from_lsn = min(from_lsn, begin.lsns.get(partition, 0))
        if from_lsn == from_offset == NEVER or not may_read(topic):
            return None
        return from_lsn, from_offset
