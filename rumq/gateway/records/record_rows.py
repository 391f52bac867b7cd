"""Records of the log as REST shows them: the rows of a view that a filter, the rules and the clock let through.

Topics are decided once each, and rows of other topics are not looked at one by one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Annotated, NamedTuple, cast

import msgspec

from commitlog import Chunk, Gap
from commitlog.kernels import rows as kernel
from commitlog.read.partition_view import PartitionView
from commitlog.row_layout import ROW, ROW_BYTES, ROW_QOS, ROW_RETAIN, ROW_V5
from rumq.admin.units import field
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.mqtt.topics import matches

MayRead = Callable[[str], bool]


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


class Looked(NamedTuple):
    """Rows that were looked at. next_lsn: behind them; record: the last of them, if it is wanted; lost: unreadable"""

    next_lsn: int
    rows: int
    record: Record | None = None
    lost: int = 0


class TopicNames:
    """Topic id -> name of one partition, read from its files when an id comes that is not known.

    For any thread: a topic keeps its id, so what two of them learn is the same."""

    def __init__(self) -> None:
        self._names: dict[int, bytes] = {}

    def topic_name(self, topic_id: int, view: PartitionView) -> bytes:
        """b"" for a topic without a name. cost: of a new one a pass over the newest segment, once a view"""
        name = self._names.get(topic_id)
        if name is None:
            self._names = {**self._names, **view.names()[0]}
            name = self._names.get(topic_id, b"")
        return name


class RecordSelection(NamedTuple):
    """What a reader wants. now_us: nobody is given what has expired by then; is_binary: payloads as bytes

    contains: part of the payload"""

    topic_filter: str
    may_read: MayRead
    now_us: int
    is_binary: bool = False
    contains: bytes = b""

    def topic(self, topic: bytes) -> bool:
        name = topic.decode(errors="replace")
        return matches(self.topic_filter, name) and self.may_read(name)


def looked_at(
    view: PartitionView, names: TopicNames, wanted: RecordSelection, lsn: int, stop: int | None = None
) -> Iterator[Looked]:
    """Every part of lsn..stop, in order; parts without a wanted topic as one."""
    topics: dict[int, str | None] = {}
    begin = max(lsn, view.first_lsn)
    for first, last in view.spans_of(begin, view.end_lsn if stop is None else stop, wanted.topic):
        for chunk in view.chunks(first, last):
            if isinstance(chunk, Gap):
                yield Looked(chunk.next_lsn, 0, lost=chunk.next_lsn - chunk.base_lsn)
            else:
                yield from rows_of(chunk, view, names, wanted, topics)


def rows_of(
    chunk: Chunk, view: PartitionView, names: TopicNames, wanted: RecordSelection, topics: dict[int, str | None]
) -> Iterator[Looked]:
    """topics: topic id -> name if it is wanted, filled here"""
    if not chunk.count:
        return
    ids = memoryview(kernel.topic_column(chunk.rows)[0]).cast("I")
    for topic_id in set(ids) - topics.keys():
        name = names.topic_name(topic_id, view)
        topics[topic_id] = name.decode(errors="replace") if wanted.topic(name) else None
    seen = 0
    for number in compress(range(len(ids)), [topics[topic_id] is not None for topic_id in ids]):
        topic = topics[ids[number]]
        assert topic is not None
        found = record_of(chunk, number, topic, view.name, wanted)
        yield Looked(chunk.base_lsn + number + 1, number + 1 - seen, found)
        seen = number + 1
    if seen < len(ids):
        yield Looked(chunk.base_lsn + len(ids), len(ids) - seen)


def record_of(chunk: Chunk, number: int, topic: str, partition: str, wanted: RecordSelection) -> Record | None:
    """The record of a row; None: it has expired, or lacks what is looked for."""
    _, start, offset, late_us, _, _, flags, _ = ROW.unpack_from(chunk.rows, number * ROW_BYTES)
    stop = len(chunk.frames)
    if number + 1 < chunk.count:
        stop = ROW.unpack_from(chunk.rows, (number + 1) * ROW_BYTES)[1]
    packet = publish_of(bytes(memoryview(chunk.frames)[start:stop]), flags)
    properties, time_us = packet.properties, chunk.base_ts + late_us
    expiry = properties.get("message_expiry_interval")
    if expiry is not None and time_us + expiry * 1_000_000 <= wanted.now_us:
        return None  # it may be given to nobody any more. MQTT 5.0, 3.3.2.3.3
    if wanted.contains not in packet.payload:
        return None
    payload, encoding = shown(packet.payload, is_binary=wanted.is_binary)
    return Record(
        topic=topic, offset=offset, partition=partition, lsn=chunk.base_lsn + number, time_us=time_us,
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
