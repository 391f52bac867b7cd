"""A shard over a simulated disk that traces, and what its clients say of user properties."""

from __future__ import annotations

from rumq.tracing.spans import Span
from rumq.tracing.tracer import Tracer
from tests.conformance.wire import Packet, Prop
from tests.faults.shard import Shard

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = CALLER[3:35]


def carrying(value: str, *more: tuple[str, str]) -> list[tuple[Prop, object]]:
    """Properties of a PUBLISH with a traceparent."""
    return [(Prop.USER_PROPERTY, pair) for pair in (("traceparent", value), *more)]


def pairs_of(packet: Packet) -> list[tuple[str, str]]:
    """User properties."""
    return [value for kind, value in packet.properties if kind == Prop.USER_PROPERTY]


def parent_of(packet: Packet) -> str | None:
    return dict(pairs_of(packet)).get("traceparent")


class Traced(Shard):
    """Each message is traced, unless the test says otherwise."""

    def trace(self, every: int = 1, per_second_max: int = 1000) -> None:
        self.parts.turn.appender.trace(every, per_second_max)

    @property
    def tracer(self) -> Tracer:
        return self.parts.turn.appender._tracer

    def spans(self) -> list[Span]:
        return self.tracer.ring.after(0, 10_000)[0]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans() if span.name == name]
