"""One traced message in a shard, and the traces of a chunk: the spans that they tell. No clock and no chance here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rumq.mqtt.kernels.window import Window
from rumq.tracing.context import TraceContext
from rumq.tracing.spans import Kind, Span, SpanRing, Value

Wire = list[tuple[int, bytes, bytes, str, int]]  # (row or lsn, trace id, span id of the publish, topic, QoS)


class Recorder(Protocol):
    """`rumq.tracing.tracer.Tracer`. new_id: so many bytes of chance; time_us: now"""

    shard: int
    ring: SpanRing
    time_us: Callable[[], int]
    new_id: Callable[[int], bytes]

    def closed(self, trace: MessageTrace) -> bool:
        """A publish span ends; whether it had not yet."""

    def delivered(self, trace: MessageTrace, begun_us: int, told: dict[str, Value]) -> bytes | None: ...

    def unsettled(self, trace: MessageTrace, delivery: bytes, window: Window, number: int) -> None: ...


class MessageTrace:
    """One traced message in this shard. context: of its publish span; lsn: once it is known here

    deliveries: spans told; more: deliveries of this turn that are only counted"""

    __slots__ = (
        "_attributes", "appended_us", "caller", "committed_us", "context", "deliveries", "lsn", "more", "qos", "row",
        "start_us", "state", "topic", "tracer",
    )  # fmt: skip

    def __init__(self, tracer: Recorder, context: TraceContext, topic: str, qos: int, row: int, lsn: int) -> None:
        self.tracer, self.context, self.topic, self.qos, self.row, self.lsn = (
            tracer,
            context,
            topic,
            qos,
            row,
            lsn,
        )
        self.caller = b""
        self.state = ""
        self.start_us = self.appended_us = self.committed_us = 0
        self.deliveries = self.more = 0
        self._attributes: dict[str, Value] = {}

    def published(self, attributes: dict[str, Value]) -> None:
        self._attributes = attributes

    def span(
        self, name: str, start_us: int, end_us: int, attributes: dict[str, Value], kind: Kind = "internal",
        parent: bytes = b"",
    ) -> bytes:  # fmt: skip
        """Tell a span; returns its id. parent: the publish span unless given"""
        tracer = self.tracer
        span_id = tracer.new_id(8)
        tracer.ring.add(
            Span(
                trace_id=self.context.trace.hex(),
                span_id=span_id.hex(),
                parent_id=(parent or self.context.span).hex(),
                name=name,
                kind=kind,
                start_us=start_us,
                end_us=max(start_us, end_us),
                attributes={"messaging.system": "mqtt", "rumq.shard": tracer.shard, **attributes},
            )
        )
        return span_id

    def end_publish(self, end_us: int, fault: str = "") -> None:
        """Tell the publish span."""
        tracer = self.tracer
        tracer.ring.add(
            Span(
                trace_id=self.context.trace.hex(),
                span_id=self.context.span.hex(),
                parent_id=self.caller.hex(),
                name="publish",
                kind="server",
                start_us=self.start_us,
                end_us=max(self.start_us, end_us),
                attributes=self._attributes,
                state=self.state,
                fault=fault,
            )
        )

    def replayed(self, stored: TraceContext, attributes: dict[str, Value]) -> None:
        """Tell the first span of a replay's trace, which is linked to the stored one."""
        tracer = self.tracer
        now_us = tracer.time_us()
        tracer.ring.add(
            Span(
                trace_id=self.context.trace.hex(), span_id=self.context.span.hex(), name="replay", kind="producer",
                start_us=now_us, end_us=now_us, links=[(stored.trace.hex(), stored.span.hex())],
                attributes={"messaging.system": "mqtt", "rumq.shard": tracer.shard, **attributes},
            )
        )  # fmt: skip

    def acknowledged(self) -> None:
        """PUBACK or PUBREC goes out now."""
        now_us = self.tracer.time_us()
        if self.tracer.closed(self):
            self.span("acknowledge", self.committed_us or now_us, now_us, {"rumq.qos": self.qos})
            self.end_publish(now_us)


class ChunkTraces:
    """The traces of one chunk, beside it: `commitlog.chunk.Chunk.traces`."""

    __slots__ = ("tracer", "traces")

    def __init__(self, tracer: Recorder, traces: list[MessageTrace]) -> None:
        self.tracer, self.traces = tracer, traces

    def within(self, first_lsn: int, stop_lsn: int) -> list[MessageTrace]:
        return [trace for trace in self.traces if first_lsn <= trace.lsn < stop_lsn]

    def wire(self, first_lsn: int, stop_lsn: int) -> Wire:
        """For another shard."""
        return [
            (each.lsn, each.context.trace, each.context.span, each.topic, each.qos)
            for each in self.within(first_lsn, stop_lsn)
        ]

    def committed(self, where: str, seconds: float) -> None:
        """The group with the chunk is written, and synced where the stream has it; it took so long."""
        now_us = self.tracer.time_us()
        begun_us = now_us - int(seconds * 1e6)
        for trace in self.traces:
            told: dict[str, Value] = {"messaging.destination.partition.id": where, "rumq.lsn": trace.lsn}
            trace.span("append", trace.appended_us, max(trace.appended_us, begun_us), told)
            trace.span("commit", max(trace.appended_us, begun_us), now_us, told)
            trace.committed_us = now_us
