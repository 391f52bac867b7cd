"""Records of the log by topic and offset, or by time, read from its files: the shards do nothing for it. In a cluster
these are this node's copies, up to where they prove the records to be committed.

Called on threads. A request examines a bounded number of records; the cursor of its answer gives what follows, also at
the end of the log and where a filter leaves everything out."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict, deque
from typing import Annotated, NamedTuple

import msgspec

from commitlog.read.partition_view import PartitionView
from rumq.admin.units import field
from rumq.gateway.records.partition_views import PartitionViews
from rumq.gateway.records.record_rows import Looked, MayRead, Record, RecordSelection, TopicNames, looked_at
from rumq.session.protocol.replay_syntax import BadStart, parse_start

EXAMINED_MAX = 200_000  # records, of one request
BYTES_MAX = 4 << 20  # of payloads in an answer
Cursor = dict[str, Annotated[int, msgspec.Meta(ge=0)]]  # partition -> lsn


class Records(msgspec.Struct, kw_only=True):
    """cursor: gives what follows, at the end of the log what comes; more: there is more already"""

    records: list[Record]
    cursor: Annotated[str, field("for the next request; never null")] = ""
    more: Annotated[bool, field("the log has more already, wanted or not; false: the end was reached")] = False
    lost: Annotated[int, field("damaged, or removed by retention meanwhile", "records")] = 0


class RecordSlice(NamedTuple):
    """Some of the log, between the cursors begin and end. is_more: there are records behind it; lost: records in it
    that cannot be read"""

    records: list[Record]
    begin: Cursor
    end: Cursor
    is_more: bool
    lost: int


class Room:
    """For how much an answer, or a partition's turn in it, has room; records, rows and size are taken already"""

    def __init__(self, records: int, rows: int, size: int) -> None:
        self._records, self._rows, self._size = records, rows, size
        self.records = self.rows = self.size = 0

    @property
    def is_full(self) -> bool:
        return self.records >= self._records or self.rows >= self._rows or self.size >= self._size

    def share(self, count: int) -> Room:
        """What is left, divided by so many."""
        left = self._records - self.records, self._rows - self.rows, self._size - self.size
        return Room(*(max(1, each // count) for each in left))

    def take(self, looked: Looked) -> bool:
        """Whether it is full then."""
        self.rows += max(1, looked.rows)
        if looked.record is not None:
            self.records += 1
            self.size += len(looked.record.payload)
        return self.is_full

    def less(self, turn: Room) -> None:
        self.records, self.rows, self.size = (
            self.records + turn.records, self.rows + turn.rows, self.size + turn.size,
        )  # fmt: skip


class ServedRecords:
    """path: of the data directory"""

    def __init__(self, path: str) -> None:
        self.views = PartitionViews(path)
        self._names: defaultdict[str, TopicNames] = defaultdict(TopicNames)  # by partition

    def names_of(self, view: PartitionView) -> TopicNames:
        return self._names[view.name]

    def fetch(
        self, topic_filter: str, start: str, cursor: str | None, limit: int, may_read: MayRead, now_us: int, *,
        is_binary: bool = False, contains: bytes = b"",
    ) -> Records:  # fmt: skip
        """start: earliest, latest, -1h, an RFC 3339 time, or an offset of one topic; contains: part of the payload

        raises: ValueError, OSError"""
        wanted = RecordSelection(topic_filter, may_read, now_us, is_binary, contains)
        found = self.piece(wanted, start, cursor, limit)
        return Records(records=found.records, cursor=text_of(found.end), more=found.is_more, lost=found.lost)

    def piece(
        self, wanted: RecordSelection, start: str, cursor: str | None, limit: int, bytes_max: int = BYTES_MAX
    ) -> RecordSlice:
        """As `fetch`. Partitions take turns, and pieces begin with different ones: none keeps another waiting."""
        views = self.views.current()
        begin, lost = begin_of(views, wanted, start, cursor)
        end, records = dict(begin), list[Record]()
        room = Room(limit, EXAMINED_MAX, bytes_max)
        first = sum(begin.values()) % len(views) if views else 0
        turns = deque(
            (view, looked_at(view, self._names[view.name], wanted, begin[view.name]))
            for view in (*views[first:], *views[:first])
        )
        while turns and not room.is_full:
            view, rows = turns.popleft()
            turn = room.share(len(turns) + 1)
            for looked in rows:
                lost += looked.lost
                end[view.name] = max(end[view.name], looked.next_lsn)
                if looked.record is not None:
                    records.append(looked.record)
                if turn.take(looked):
                    turns.append((view, rows))
                    break
            else:
                end[view.name] = max(end[view.name], view.end_lsn)  # a copy may be behind the cursor's node
            room.less(turn)
        is_more = any(end[view.name] < view.end_lsn for view, _ in turns)
        return RecordSlice(records, begin, end, is_more, lost)

    def last(self, topic: str, may_read: MayRead, now_us: int, *, is_binary: bool = False) -> Record | None:
        """The newest record of a topic that has not expired.

        cost: reads back from the end of its partition, a bounded number of records"""
        wanted = RecordSelection(topic, may_read, now_us, is_binary)
        for view in self.views.current():
            if topic.encode() not in view.names()[0].values():
                continue
            stop, step = view.end_lsn, 256
            while stop > view.first_lsn and view.end_lsn - stop < EXAMINED_MAX:
                begin = max(view.first_lsn, stop - step)
                newest = None
                for looked in looked_at(view, self._names[view.name], wanted, begin, stop):
                    newest = looked.record or newest
                if newest is not None:
                    return newest
                stop, step = begin, step * 4
        return None


def begin_of(views: list[PartitionView], wanted: RecordSelection, start: str, cursor: str | None) -> tuple[Cursor, int]:
    """Where each partition is read from, and how many records retention has removed behind the cursor.

    raises: ValueError, OSError"""
    try:
        place = parse_start(start, wanted.topic_filter, wanted.now_us)
    except BadStart as fault:
        raise ValueError(str(fault)) from None
    if not cursor:
        return {view.name: first_lsn(view, wanted.topic_filter, place) for view in views}, 0
    begin, lost = cursor_of(cursor), 0
    for view in views:
        at = begin.get(view.name, view.first_lsn)  # one that is new since is read from its begin
        lost += max(0, view.first_lsn - at)
        begin[view.name] = max(at, view.first_lsn)
    return begin, lost


def first_lsn(view: PartitionView, topic_filter: str, place: str | tuple[str, int]) -> int:
    if isinstance(place, tuple):
        kind, value = place
        return view.find_offset(topic_filter.encode(), value) if kind == "offset" else view.find_time(value)
    return view.end_lsn if place == "latest" else view.first_lsn


def text_of(place: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def cursor_of(text: str) -> Cursor:
    """raises: ValueError"""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=Cursor)
    except (ValueError, binascii.Error):
        raise ValueError("the cursor is none that an answer has given") from None
