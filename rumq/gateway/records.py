"""Records of the log by topic and offset, or by time, read from its files: the shards do nothing for it. In a cluster
these are this node's copies, up to where they prove the records to be committed.

Called on threads. A request examines a bounded number of records; the cursor of its answer gives what is left."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, cast

import msgspec

from commitlog import Chunk, Gap, RealFiles
from commitlog.log_reader import LogReader
from commitlog.partition_view import PartitionView
from commitlog.row_layout import ROW, ROW_QOS, ROW_RETAIN, ROW_V5
from rumq.admin.units import field
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.mqtt.topics import matches
from rumq.session.protocol.replay_syntax import BadStart, parse_start

EXAMINED_MAX = 200_000  # records, of one request
BYTES_MAX = 4 << 20  # of payloads in an answer
MayRead = Callable[[str], bool]
Cursor = dict[str, int]  # partition -> lsn


class Record(msgspec.Struct, kw_only=True):
    """A message as it was published."""

    topic: str
    offset: Annotated[int, field("in its topic, from 0")]
    partition: Annotated[str, field("such as main/g1/p0")]
    lsn: Annotated[int, field("in its partition, from 0", "lsn")]
    time_us: Annotated[int, field("when the broker received it", "µs since 1970")]
    qos: int
    retain: bool
    payload: Annotated[str, field("text, or base64 as `encoding` says; in MessagePack bytes")]
    encoding: Annotated[str, field("utf-8, base64 or bytes")]
    user_properties: list[tuple[str, str]] = []
    content_type: str | None = None


class Records(msgspec.Struct, kw_only=True):
    """cursor: gives what follows; null at the end of the log. lost: records in the range that cannot be read"""

    records: list[Record]
    cursor: str | None = None
    lost: Annotated[int, field("damaged, or removed by retention meanwhile", "records")] = 0


class ServedRecords:
    """path: of the data directory"""

    def __init__(self, path: str) -> None:
        self._path = path
        self._views: dict[str, PartitionView] = {}
        self._looking = threading.Lock()

    def fetch(
        self, topic_filter: str, start: str, cursor: str | None, limit: int, may_read: MayRead, now_us: int, *,
        is_binary: bool = False, contains: bytes = b"",
    ) -> Records:  # fmt: skip
        """start: earliest, latest, -1h, an RFC 3339 time, or an offset of one topic; contains: part of the payload

        raises: ValueError, OSError"""
        views = self._partitions()
        try:
            place = parse_start(start, topic_filter, now_us)
        except BadStart as fault:
            raise ValueError(str(fault)) from None
        begins = cursor_of(cursor) if cursor else {}
        found = Records(records=[])
        ends: Cursor = {}
        examined = size = 0
        for view in views:
            lsn = begins.get(view.name, -1)
            if lsn < 0:
                lsn = view.first_lsn if cursor else first_lsn(view, topic_filter, place)
            is_full = examined >= EXAMINED_MAX or len(found.records) >= limit or size >= BYTES_MAX
            ends[view.name] = lsn
            if is_full:
                continue
            for item in wanted(
                view, lsn, topic_filter, may_read, now_us, is_binary=is_binary, contains=contains
            ):
                if isinstance(item, Gap):
                    found.lost += item.next_lsn - item.base_lsn
                    ends[view.name] = item.next_lsn
                    continue
                at, record = item
                examined += 1
                ends[view.name] = at + 1
                if record is not None:
                    found.records.append(record)
                    size += len(record.payload)
                if examined >= EXAMINED_MAX or len(found.records) >= limit or size >= BYTES_MAX:
                    break
            else:
                ends[view.name] = view.end_lsn
        is_over = all(ends[view.name] >= view.end_lsn for view in views)
        found.cursor = None if is_over else text_of(ends)
        return found

    def last(self, topic: str, may_read: MayRead, now_us: int, *, is_binary: bool = False) -> Record | None:
        """The newest record of a topic that has not expired.

        cost: reads back from the end of its partition, a bounded number of records"""
        for view in self._partitions():
            if topic.encode() not in view.names()[0].values():
                continue
            stop, step = view.end_lsn, 256
            while stop > view.first_lsn and view.end_lsn - stop < EXAMINED_MAX:
                begin = max(view.first_lsn, stop - step)
                newest = None
                for item in wanted(view, begin, topic, may_read, now_us, stop, is_binary=is_binary):
                    if not isinstance(item, Gap) and item[1] is not None:
                        newest = item[1]
                if newest is not None:
                    return newest
                stop, step = begin, step * 4
        return None

    def _partitions(self) -> list[PartitionView]:
        with self._looking:
            reader = LogReader(RealFiles(), self._path, only_committed=True)
            found = []
            for name in reader.names():
                view = reader.maybe_partition(name, self._views.get(name))
                if view is not None:
                    self._views[name] = view
                    found.append(view)
            return found


def first_lsn(view: PartitionView, topic_filter: str, place: str | tuple[str, int]) -> int:
    if isinstance(place, tuple):
        kind, value = place
        return view.find_offset(topic_filter.encode(), value) if kind == "offset" else view.find_time(value)
    return view.end_lsn if place == "latest" else view.first_lsn


def wanted(
    view: PartitionView,
    lsn: int,
    topic_filter: str,
    may_read: MayRead,
    now_us: int,
    stop: int | None = None,
    *,
    is_binary: bool,
    contains: bytes = b"",
) -> Iterator[Gap | tuple[int, Record | None]]:
    """(lsn, record, or None if it is not wanted or has expired) of each record that is looked at, and gaps."""
    topics: dict[int, str | None] = {}
    names = view.names()[0]

    def wants(topic: bytes) -> bool:
        name = topic.decode(errors="replace")
        return matches(topic_filter, name) and may_read(name)

    for first, last in view.spans_of(max(lsn, view.first_lsn), view.end_lsn if stop is None else stop, wants):
        for chunk in view.chunks(first, last):
            if isinstance(chunk, Gap):
                yield chunk
                continue
            yield from records_of(
                chunk, view.name, names, topics, wants, now_us, is_binary=is_binary, contains=contains
            )


def records_of(
    chunk: Chunk, partition: str, names: dict[int, bytes], topics: dict[int, str | None],
    wants: Callable[[bytes], bool], now_us: int, *, is_binary: bool, contains: bytes = b"",
) -> Iterator[tuple[int, Record | None]]:  # fmt: skip
    """topics: topic id -> name if it is wanted, filled here"""
    rows = list(ROW.iter_unpack(chunk.rows))
    for number, (topic_id, start, offset, late_us, _, _, flags, _) in enumerate(rows):
        lsn = chunk.base_lsn + number
        if topic_id not in topics:
            name = names.get(topic_id, b"")
            topics[topic_id] = name.decode(errors="replace") if wants(name) else None
        topic = topics[topic_id]
        if topic is None:
            yield lsn, None
            continue
        stop = rows[number + 1][1] if number + 1 < len(rows) else len(chunk.frames)
        packet = publish_of(bytes(memoryview(chunk.frames)[start:stop]), flags)
        properties, time_us = packet.properties, chunk.base_ts + late_us
        expiry = properties.get("message_expiry_interval")
        if expiry is not None and time_us + expiry * 1_000_000 <= now_us:
            yield lsn, None  # it may be given to nobody any more. MQTT 5.0, 3.3.2.3.3
            continue
        if contains not in packet.payload:
            yield lsn, None
            continue
        payload, encoding = shown(packet.payload, is_binary=is_binary)
        yield lsn, Record(
            topic=topic, offset=offset, partition=partition, lsn=lsn, time_us=time_us,
            qos=flags & ROW_QOS, retain=bool(flags & ROW_RETAIN), payload=payload, encoding=encoding,
            user_properties=list(properties.get("user_properties", ())), content_type=properties.get("content_type"),
        )  # fmt: skip


def publish_of(frame: bytes, flags: int) -> Publish:
    head = frame_at(frame, 0, len(frame))
    assert head is not None
    packet = decode(frame[0], frame[head[0] :], 5 if flags & ROW_V5 else 4)
    assert isinstance(packet, Publish)
    return packet


def shown(payload: bytes, *, is_binary: bool) -> tuple[str, str]:
    if is_binary:
        return cast(str, payload), "bytes"  # JSON's type: MessagePack has one for bytes
    try:
        return payload.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(payload).decode(), "base64"


def text_of(ends: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(ends)).decode()


def cursor_of(text: str) -> Cursor:
    """raises: ValueError"""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=Cursor)
    except ValueError:
        raise ValueError("the cursor is none that an answer has given") from None
