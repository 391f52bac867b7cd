"""The traces of a shard: which messages are traced, their contexts, and the spans of their way through the broker.

Everything here is per traced message; what a turn pays for the others is in `rumq.mqtt.kernels.trace_context`. The
record in the log has the context of its publish span. Clock and chance are arguments. docs/reference/tracing.md"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from commitlog.chunk import FLAG_UNIFORM, FLAG_V5
from commitlog.row_layout import ROW, ROW_BYTES, ROW_PROPERTIES, ROW_QOS, ROW_RETAIN, ROW_V5
from rumq.mqtt.kernels.trace_context import Sampler, contexts, move_frames, stamped
from rumq.mqtt.kernels.window import Window
from rumq.tracing.context import TraceContext, parsed, told_state
from rumq.tracing.spans import SpanRing, Value
from rumq.tracing.trace import ChunkTraces, MessageTrace, Wire

DELIVERIES_MAX = 16  # spans of deliveries of one message in one shard; the others are counted in one span a turn
UNSETTLED_MAX = 256  # deliveries whose acknowledgement is waited for
OPEN_MAX = 4096  # publishes that wait for their acknowledgement
OPEN_US = 60_000_000  # then they are told as they are
FRAME_BYTES_MAX = 1 << 24  # a longer one is not traced: its copy would take longer than what is measured


class AckQueue(Protocol):
    """Of a connection: what is acknowledged next."""

    def trace(self, message: AckListener) -> None:
        """A message is among it, which is to be told when its acknowledgement goes out."""


class AckListener(Protocol):
    def acknowledged(self) -> None: ...


class TracedPublisher(NamedTuple):
    """acks: of its connection, if it waits for an acknowledgement; attributes: of the span"""

    client_id: str
    acks: AckQueue | None
    attributes: dict[str, Value]


class Stamped(NamedTuple):
    """A batch whose traced messages carry the contexts of their publish spans."""

    frames: bytes
    flags: int
    traces: list[MessageTrace]


class Tracer:
    """sampler: None while tracing is off; ring: finished spans; traces: begun or taken over so far"""

    def __init__(
        self, shard: int, publisher: Callable[[int, int, int], TracedPublisher], time_us: Callable[[], int],
        random: Callable[[int], bytes],
    ) -> None:  # fmt: skip
        """publisher: of a partition, a number and a QoS; random: so many bytes of chance"""
        self.shard, self.time_us, self.new_id = shard, time_us, random
        self._publisher = publisher
        self.sampler: Sampler | None = None
        self.ring = SpanRing()
        self.traces = 0
        self._over = 0
        self._open: OrderedDict[MessageTrace, None] = OrderedDict()
        self._more: list[MessageTrace] = []
        self._unsettled: deque[tuple[Window, int, MessageTrace, bytes, int]] = deque()

    def set(self, sample_every: int, per_second_max: int) -> Sampler | None:
        """One message in so many; 0: off. What is under way is told as it ends."""
        before = self.sampler
        if before is not None:
            self._over += before.over
            before.over = 0
        self.sampler = Sampler(sample_every, per_second_max) if sample_every else None
        if self.sampler is not None:
            self.sampler.left = self._gap(self.sampler)
            self.sampler.waits = bool(self._unsettled)
        else:
            self._unsettled.clear()
        return self.sampler

    @property
    def over(self) -> int:
        """Messages that were not traced because of the bound of the rate."""
        return self._over + (self.sampler.over if self.sampler is not None else 0)

    def _gap(self, sampler: Sampler) -> int:
        """Messages until the next one, 1 to 2 n - 1: a device that sends every n-th message is not always it."""
        if sampler.every == 1:
            return 1
        return 1 + int.from_bytes(self.new_id(8), "little") % (2 * sampler.every - 1)

    # Publishing

    def publishes(
        self, index: int, rows: bytearray, frames: bytes, count: int, flags: int, now_us: int
    ) -> Stamped | None:
        """Stamp the messages of a batch that the sampler wants. now_us: when the turn began, which read them"""
        sampler = self.sampler
        assert sampler is not None
        carried = set(sampler.carried)
        picked = set(carried)
        while sampler.left <= 0 and len(picked) < sampler.budget:
            picked.add(max(0, count - 1 + sampler.left))
            sampler.left += self._gap(sampler)
        if sampler.left <= 0:
            sampler.over += 1 - sampler.left // sampler.every
            sampler.left = sampler.every
        traces: list[MessageTrace] = []
        pieces: list[bytes] = []
        grown: list[tuple[int, int]] = []
        taken = 0
        for number in sorted(picked):
            topic_id, start, offset, late_us, payload_at, publisher, row_flags, _ = ROW.unpack_from(
                rows, number * ROW_BYTES
            )
            stop = frame_at(rows, number + 1) if number + 1 < count else len(frames)
            frame = frames[start:stop]
            found = self._begin(index, number, (payload_at, publisher, row_flags), frame, number in carried)
            if found is None:
                continue
            found.start_us = now_us
            is_v5 = bool(row_flags & ROW_V5)
            made, payload_at = stamped(frame, row_flags & ROW_QOS, is_v5, found.context.traceparent)
            pieces += (frames[taken:start], made)
            taken = stop
            grown.append((number, len(made) - len(frame)))
            if not is_v5:
                flags |= FLAG_V5
                if count > 1:
                    flags &= ~FLAG_UNIFORM
            row_flags |= ROW_V5 | ROW_PROPERTIES
            ROW.pack_into(
                rows,
                number * ROW_BYTES,
                topic_id,
                start,
                offset,
                late_us,
                payload_at,
                publisher,
                row_flags,
                0,
            )
            traces.append(found)
        if not traces:
            return None
        sampler.budget -= len(traces)
        self.traces += len(traces)
        pieces.append(frames[taken:])
        if any(by for _, by in grown):
            move_frames(rows, count, grown)
        return Stamped(b"".join(pieces), flags, traces)

    def _begin(
        self, index: int, number: int, row: tuple[int, int, int], frame: bytes, is_carried: bool
    ) -> MessageTrace | None:
        """A trace of one message; None where its own context is not to be touched, or cannot be.

        row: (where the payload begins, publisher number, flags)"""
        if len(frame) > FRAME_BYTES_MAX:
            return None
        payload_at, publisher, flags = row
        qos = flags & ROW_QOS
        value, state = contexts(frame, qos) if flags & ROW_PROPERTIES else (None, b"")
        caller = parsed(value) if value else None
        if is_carried:
            if caller is None or not caller.is_sampled:
                return None
        elif value is not None:
            return None  # its publisher has decided that it is not recorded, or nobody understands it
        context = TraceContext(
            caller.trace if caller is not None else self.new_id(16), self.new_id(8),
            caller.flags if caller is not None else 1,
        )  # fmt: skip
        topic = topic_of(frame)
        trace = MessageTrace(self, context, topic, qos, number, 0)
        if caller is not None:
            trace.caller, trace.state = caller.span, told_state(state)
        who = self._publisher(index, publisher, qos)
        trace.published(
            {
                "messaging.system": "mqtt", "messaging.operation.name": "publish", "messaging.operation.type": "send",
                "messaging.destination.name": topic, "messaging.client.id": who.client_id,
                "messaging.message.body.size": len(frame) - payload_at,
                "messaging.message.envelope.size": len(frame), "network.protocol.name": "mqtt",
                "rumq.qos": qos, "rumq.retain": bool(flags & ROW_RETAIN), "rumq.shard": self.shard,
                **who.attributes,
            }
        )  # fmt: skip
        if qos and who.acks is not None:
            self._open[trace] = None
            who.acks.trace(trace)
            if len(self._open) > OPEN_MAX:
                self._give_up(next(iter(self._open)), "too many publishes wait")
        return trace

    def appended(self, base_lsn: int, traces: list[MessageTrace]) -> ChunkTraces:
        """Messages of this shard are in its log."""
        now_us = self.time_us()
        for trace in traces:
            trace.lsn = base_lsn + trace.row
            trace.appended_us = now_us
            if trace not in self._open:
                trace.end_publish(now_us)
        return ChunkTraces(self, traces)

    def handed_over(self, traces: list[MessageTrace]) -> Wire:
        """Messages go to the owner of their partition."""
        now_us = self.time_us()
        for trace in traces:
            if trace not in self._open:
                trace.end_publish(now_us)
        return [(each.row, each.context.trace, each.context.span, each.topic, each.qos) for each in traces]

    def closed(self, trace: MessageTrace) -> bool:
        """A publish span ends; whether it had not yet."""
        return self._open.pop(trace, self) is None

    def _give_up(self, trace: MessageTrace, why: str) -> None:
        del self._open[trace]
        trace.end_publish(self.time_us(), why)

    # Other shards

    def received(self, wire: Wire, base_lsn: int, sent_us: int, *, is_published: bool) -> ChunkTraces | None:
        """Messages have come over the bus, to be appended (then they are numbered by row), or to be delivered here."""
        if self.sampler is None:
            return None
        now_us = self.time_us()
        traces = []
        for place, trace_id, span_id, topic, qos in wire:
            lsn = base_lsn + place if is_published else place
            trace = MessageTrace(self, TraceContext(trace_id, span_id), topic, qos, place, lsn)
            trace.appended_us = now_us
            trace.span("forward", sent_us, now_us, {"rumq.forward": "append" if is_published else "deliver"})
            traces.append(trace)
        return ChunkTraces(self, traces)

    # Deliveries

    def delivered(self, trace: MessageTrace, begun_us: int, told: dict[str, Value]) -> bytes | None:
        """A subscriber was given a message; the id of the span, None where it is only counted."""
        if trace.deliveries >= DELIVERIES_MAX:
            if not trace.more:
                self._more.append(trace)
                self._wait()
            trace.more += 1
            return None
        trace.deliveries += 1
        name: dict[str, Value] = {
            "messaging.operation.name": "deliver", "messaging.destination.name": trace.topic, "rumq.lsn": trace.lsn,
        }  # fmt: skip
        return trace.span("deliver", begun_us, self.time_us(), name | told, "producer")

    def unsettled(self, trace: MessageTrace, delivery: bytes, window: Window, number: int) -> None:
        """A subscriber owes an acknowledgement. number: of the message in its window"""
        if len(self._unsettled) < UNSETTLED_MAX:
            self._unsettled.append((window, number, trace, delivery, self.time_us()))
            self._wait()

    def _wait(self) -> None:
        if self.sampler is not None:
            self.sampler.waits = True

    def end_turn(self) -> None:
        """Tell deliveries that were only counted, and acknowledgements of subscribers that have come."""
        for trace in self._more:
            now_us = self.time_us()
            told: dict[str, Value] = {
                "messaging.operation.name": "deliver", "messaging.destination.name": trace.topic,
                "messaging.batch.message_count": trace.more,
            }  # fmt: skip
            trace.span("deliver to others", now_us, now_us, told, "producer")
            trace.more = 0
        self._more.clear()
        waiting, self._unsettled = self._unsettled, deque()
        for window, number, trace, delivery, begun_us in waiting:
            now_us = self.time_us()
            if number < window.head or window.state_of(number % 65535 + 1) == 0:
                trace.span("settle", begun_us, now_us, {"messaging.operation.name": "settle"}, parent=delivery)
            elif now_us - begun_us < OPEN_US:
                self._unsettled.append((window, number, trace, delivery, begun_us))
        if self.sampler is not None:
            self.sampler.waits = bool(self._unsettled)

    def sweep(self) -> None:
        """Tell publishes whose acknowledgement did not come, as those of connections that were lost."""
        until_us = self.time_us() - OPEN_US
        while self._open and (oldest := next(iter(self._open))).start_us < until_us:
            self._give_up(oldest, "not acknowledged")


def frame_at(rows: bytearray, number: int) -> int:
    """Where the frame of a row begins."""
    return int(ROW.unpack_from(rows, number * ROW_BYTES)[1])


def topic_of(frame: bytes) -> str:
    at = 1
    while frame[at] >= 128:
        at += 1
    return frame[at + 3 : at + 3 + int.from_bytes(frame[at + 1 : at + 3], "big")].decode(errors="replace")
