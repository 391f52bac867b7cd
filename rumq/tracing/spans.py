"""Finished spans, and the ring that a shard keeps them in until the gateway has taken them. Knows no clock."""

from __future__ import annotations

from collections import deque
from typing import Annotated, Literal

from msgspec import Meta, Struct

Kind = Literal["server", "internal", "producer"]
Value = str | int | bool
SPANS_MAX = 4096  # of a shard; the oldest make room


class Span(Struct, kw_only=True, omit_defaults=True):
    """trace_id, span_id, parent_id: hexadecimal; times: µs since 1970"""

    trace_id: Annotated[str, Meta(description="32 hexadecimal digits")]
    span_id: Annotated[str, Meta(description="16 hexadecimal digits")]
    parent_id: Annotated[str, Meta(description="likewise; empty: the first span of its trace")] = ""
    name: str
    kind: Kind = "internal"
    start_us: int
    end_us: int
    attributes: dict[str, Value] = {}
    links: Annotated[list[tuple[str, str]], Meta(description="(trace id, span id) of other traces")] = []
    state: Annotated[str, Meta(description="tracestate of the publisher")] = ""
    fault: Annotated[str, Meta(description="what went wrong; empty: nothing")] = ""


class SpanRing:
    """The newest spans, numbered from 1. count: of all that were ever added"""

    def __init__(self, spans_max: int = SPANS_MAX) -> None:
        self._spans: deque[Span] = deque(maxlen=spans_max)
        self.count = 0

    def add(self, span: Span) -> None:
        self._spans.append(span)
        self.count += 1

    def after(self, number: int, limit: int) -> tuple[list[Span], int, int]:
        """Spans behind a number: (spans, the last one's number, how many between were overwritten)."""
        number = number if 0 <= number <= self.count else 0  # of an earlier run of the shard
        first = self.count - len(self._spans)
        lost = max(0, first - number)
        begin = max(0, number - first)
        found = [self._spans[at] for at in range(begin, min(begin + limit, len(self._spans)))]
        return found, number + lost + len(found), lost
