"""Traces for the operator: packets of a client, or messages of a topic, as events, for a time and at a bounded rate.

A client is traced at its connection (`rumq.net.connection.Connection.tap`), a topic by reading what was appended to its
partition since the last look. No payload is told. A connection that is not traced pays for a comparison with None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commitlog import Chunk, Partition
from commitlog.row_layout import ROW, ROW_QOS, ROW_RETAIN
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packet_types import PacketType
from rumq.shards.admin.listings.listings import Answer
from rumq.shards.admin.queries.parts import AdminLoop
from rumq.shards.stats.counters import CountedShard

TRACES_MAX = 16
EVENTS_A_SECOND = 100.0  # of one trace order; further events are only counted
LOOK_SECONDS = 0.25
RECORDS_A_LOOK = 4096  # read of a traced topic's partition at each look; of more only the newest


@dataclass(slots=True, eq=False)
class TraceOrder:
    """kind: client or topic; until: monotonic seconds; tokens: events that may be told now"""

    kind: str
    name: str
    until: float
    at: float
    tokens: float = EVENTS_A_SECOND
    reported: int = 0
    left_out: int = 0
    partition: Partition | None = None
    topic_id: int = -1
    next_lsn: int = 0

    def may_tell(self, now: float) -> bool:
        """Whether one more event is within the rate; counts it."""
        self.tokens = min(EVENTS_A_SECOND, self.tokens + (now - self.at) * EVENTS_A_SECOND)
        self.at = now
        if self.tokens < 1.0:
            self.left_out += 1
            return False
        self.tokens -= 1.0
        self.reported += 1
        return True


class Tracing:
    def __init__(self, counted: CountedShard, loop: AdminLoop) -> None:
        self._counted, self._loop = counted, loop
        self._traces: dict[tuple[str, str], TraceOrder] = {}
        self._looks = False

    def begin(self, asked: q.Trace) -> Answer:
        """One that runs goes on for so long from now on. raises: ValueError when there are too many"""
        if not self.resume(asked.kind, asked.name, asked.seconds):
            raise ValueError(f"{TRACES_MAX} traces run already: end one")
        if self._counted.index == 0:
            self._loop.events.tell("trace.started", kind=asked.kind, whom=asked.name, seconds=asked.seconds)
        return {"done": int(self._counted.index == 0)}

    def resume(self, kind: str, name: str, seconds: float) -> bool:
        """Trace for so long from now on, a topic from the end of its partition on; False: there are too many."""
        known = self._traces.get((kind, name))
        if known is None and len(self._traces) >= TRACES_MAX:
            return False
        now = self._loop.clock.monotonic
        if known is None:
            self._traces[kind, name] = TraceOrder(kind, name, now + seconds, now)
        else:
            known.until = now + seconds  # connections have taps for it
        if not self._looks:
            self._looks = True
            self._look()
        return True

    def in_force(self) -> list[tuple[str, str, float]]:
        """(kind, name, seconds left) of each."""
        now = self._loop.clock.monotonic
        return [(each.kind, each.name, each.until - now) for each in self._traces.values()]

    def end(self, asked: q.Untrace) -> Answer:
        trace = self._traces.get((asked.kind, asked.name))
        if trace is None:
            return {"done": 0}
        self._end(trace)
        return {"done": int(self._counted.index == 0)}

    def running(self, _: q.Nothing) -> dict[str, list[r.TraceRow]]:
        now = self._loop.clock.monotonic
        rows = [
            r.TraceRow(
                kind=each.kind, name=each.name, seconds=round(each.until - now, 1), reported=each.reported,
                left_out=each.left_out,
            )
            for each in self._traces.values()
        ]  # fmt: skip
        return {"traces": rows}

    def _look(self) -> None:
        """Every quarter of a second: end what is over, tap clients that have come, read what topics were given."""
        now = self._loop.clock.monotonic
        for trace in list(self._traces.values()):
            if trace.until <= now:
                self._end(trace)
            elif trace.kind == "client":
                self._tap(trace)
            else:
                self._read(trace)
        self._looks = bool(self._traces)
        if self._looks:
            self._loop.timers.later(LOOK_SECONDS, self._look)

    def _end(self, trace: TraceOrder) -> None:
        del self._traces[trace.kind, trace.name]
        if trace.kind == "client":
            for link in self._links(trace.name):
                link.transport.tap = None
        self._loop.events.tell(
            "trace.ended", kind=trace.kind, whom=trace.name, reported=trace.reported, left_out=trace.left_out
        )

    def _links(self, client_id: str) -> list[Any]:
        sessions = self._counted.registry.sessions.values()
        return [s.link for s in sessions if s.client_id == client_id and s.link is not None]

    def _tap(self, trace: TraceOrder) -> None:
        for link in self._links(trace.name):
            transport = link.transport
            if transport.tap is None:
                transport.tap = PacketTap(self._loop, trace, link.client.version, transport.unparsed)

    def _read(self, trace: TraceOrder) -> None:
        if trace.partition is None and not self._find(trace):
            return
        partition = trace.partition
        assert partition is not None
        newest = partition.next_lsn
        if newest - trace.next_lsn > RECORDS_A_LOOK:
            trace.left_out += newest - trace.next_lsn - RECORDS_A_LOOK  # of the partition: an upper bound
            trace.next_lsn = newest - RECORDS_A_LOOK
        while trace.next_lsn < newest:
            for chunk in partition.read(trace.next_lsn) or ():
                if isinstance(chunk, Chunk):
                    self._tell_records(trace, partition, chunk)
                trace.next_lsn = max(trace.next_lsn, chunk.next_lsn)
                break
            else:
                trace.left_out += newest - trace.next_lsn  # no longer in memory: of the partition, an upper bound
                trace.next_lsn = newest

    def _find(self, trace: TraceOrder) -> bool:
        name = trace.name.encode()
        for partition in self._counted.store.own:
            topic_id = partition.topic_ids.get(name)
            if topic_id is not None:
                trace.partition, trace.topic_id, trace.next_lsn = partition, topic_id, partition.next_lsn
                return True
        return False

    def _tell_records(self, trace: TraceOrder, partition: Partition, chunk: Chunk) -> None:
        rows = memoryview(chunk.rows)
        for number, row in enumerate(ROW.iter_unpack(rows)):
            topic_id, start, offset, late_us, payload_at, publisher, flags, _ = row
            lsn = chunk.base_lsn + number
            if topic_id != trace.topic_id or lsn < trace.next_lsn:
                continue
            if not trace.may_tell(self._loop.clock.monotonic):
                continue
            stop = ROW.unpack_from(rows, (number + 1) * ROW.size)[1] if number + 1 < chunk.count else len(chunk.frames)
            self._loop.events.tell(
                "trace.message", topic=trace.name, stream=partition.stream, partition=partition.number, lsn=lsn,
                offset=offset, time_us=chunk.base_ts + late_us, qos=flags & ROW_QOS, retain=bool(flags & ROW_RETAIN),
                payload_bytes=stop - start - payload_at, publisher=publisher,
            )  # fmt: skip


class PacketTap:
    """Told of what one connection reads and writes: cuts packets and tells each."""

    def __init__(self, loop: AdminLoop, trace: TraceOrder, version: int, unparsed: bytearray | None) -> None:
        """unparsed: the begin of a packet that was read before"""
        self._loop, self._trace, self._version = loop, trace, version
        self._read = FrameReader(version=version)
        self._sent = FrameReader(version=version)
        if unparsed:
            self._read.receive(bytes(unparsed))

    def received(self, data: bytes) -> None:
        self._cut(self._read, data, "in")

    def sent(self, data: bytes | bytearray | memoryview) -> None:
        self._cut(self._sent, bytes(data), "out")

    def _cut(self, reader: FrameReader, data: bytes, direction: str) -> None:
        try:
            reader.receive(data)
            for frame in reader.frames():
                if self._trace.may_tell(self._loop.clock.monotonic):
                    self._loop.events.tell(
                        "trace.packet", client_id=self._trace.name, direction=direction,
                        **describe_packet(frame.first_byte, frame.body, self._version),
                    )  # fmt: skip
        except MqttFault:
            pass  # the protocol refuses it, and says why


def describe_packet(first_byte: int, body: bytes, version: int) -> dict[str, object]:
    """What is told of a packet: never its payload, a password or a property."""
    told: dict[str, object] = {"packet": PacketType(first_byte >> 4).name, "bytes": len(body)}
    try:
        packet = decode(first_byte, body, version)
    except MqttFault as fault:
        return {**told, "fault": str(fault)}
    match packet:
        case p.Publish():
            told |= {"topic": packet.topic, "qos": packet.qos, "retain": packet.retain, "dup": packet.dup}
        case p.Subscribe():
            told["filters"] = [each.topic_filter for each in packet.filters]
        case p.Unsubscribe():
            told["filters"] = list(packet.filters)
    for name in ("packet_id", "reason"):
        value = getattr(packet, name, None)
        if value is not None:
            told[name] = int(value)
    return told
