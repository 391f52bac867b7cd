"""The export of spans: bounded, counted, and started over when its settings change. Time is trio's MockClock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from rumq.gateway.broker import span_export
from rumq.gateway.broker.shard_client import ShardAway
from rumq.gateway.broker.span_export import SpanCounts, SpanExporter
from rumq.settings.table.trace import Trace
from rumq.tracing.spans import Span, SpanRing

SOMEWHERE = Trace(sample_every=1, otlp_endpoint="http://there:4318")


class Shards:
    """Of two one is away. asked: how often the other was"""

    count = 2

    def __init__(self, every: int = 1) -> None:
        self.ring, self.every, self.asked = SpanRing(), every, 0

    def tell(self, count: int) -> None:
        for _ in range(count):
            name = f"{self.ring.count + 1:016x}"
            self.ring.add(Span(trace_id=name * 2, span_id=name, name="n", start_us=0, end_us=1))

    async def ask_one(self, index: int, question: bytes) -> Any:
        if index:
            raise ShardAway("shard 1 does not answer")
        self.asked += 1
        asked = msgspec.json.decode(question)
        spans, number, lost = self.ring.after(int(asked["after"].partition(":")[2]), asked["limit"])
        page = {"shard": 0, "sample_every": self.every, "spans": spans, "next": number, "lost": lost}
        return msgspec.to_builtins({"shards": [page]})


class Endpoint:
    """takes: whether it does; sent: sizes of batches"""

    def __init__(self) -> None:
        self.takes, self.sent, self.closed, self.numbers = True, list[int](), False, list[str]()

    def send(self, spans: Sequence[Span]) -> bool:
        self.sent.append(len(spans))
        self.numbers += [span.span_id for span in spans]
        if self.takes is None:
            raise RuntimeError("a fault of the SDK")
        return self.takes

    def close(self) -> None:
        self.closed = True


class World:
    def __init__(self, every: int = 1) -> None:
        self.shards, self.counts, self.endpoint = Shards(every), SpanCounts(), Endpoint()
        self.events: list[str] = []
        self.exporter = SpanExporter(
            self.shards, self.counts, lambda name, **fields: self.events.append(name),
            lambda settings, headers: self.endpoint,
        )  # fmt: skip

    async def run_for(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self.exporter.run()


def run(world: World, seconds: float) -> None:
    trio.run(world.run_for, seconds, clock=MockClock(autojump_threshold=0.05))


def test_each_span_is_sent_once_in_batches() -> None:
    world = World()
    world.exporter.configure(SOMEWHERE, {})
    world.shards.tell(1200)
    run(world, 3.0)
    assert world.counts == SpanCounts(1200, 0) and max(world.endpoint.sent) <= span_export.BATCH_MAX
    assert len(set(world.endpoint.numbers)) == 1200


def test_without_an_endpoint_the_shards_are_not_asked() -> None:
    world = World()
    world.shards.tell(3)
    run(world, 30.0)
    assert world.shards.asked == 0


def test_while_tracing_is_off_they_are_asked_rarely() -> None:
    world = World(every=0)
    world.exporter.configure(SOMEWHERE, {})
    run(world, 60.0)
    assert world.shards.asked <= 13


@pytest.mark.parametrize("takes", [False, None], ids=["refuses", "raises"])
def test_what_is_not_taken_is_counted_and_told_once(takes: bool | None) -> None:
    world = World()
    world.endpoint.takes = takes  # type: ignore[assignment]
    world.exporter.configure(SOMEWHERE, {})
    for _ in range(2):
        world.shards.tell(10)
        run(world, 1.0)
    assert world.counts == SpanCounts(0, 20) and world.events == ["trace.export_failed"]
    world.endpoint.takes = True
    world.shards.tell(5)
    run(world, 1.0)
    assert world.counts == SpanCounts(5, 20)
    assert world.events == ["trace.export_failed", "trace.export_resumed"]


def test_the_ring_of_a_shard_that_was_not_asked_in_time_loses_the_oldest() -> None:
    world = World()
    world.exporter.configure(SOMEWHERE, {})
    world.shards.tell(5000)
    run(world, 5.0)
    assert world.counts == SpanCounts(4096, 904)


def test_other_settings_are_another_endpoint_and_none_drops_what_waits() -> None:
    world = World()
    world.exporter.configure(SOMEWHERE, {})
    first, world.endpoint = world.endpoint, Endpoint()
    world.exporter.configure(SOMEWHERE, {})
    assert not first.closed
    world.exporter.configure(SOMEWHERE, {"authorization": "Bearer x"})
    assert first.closed
    world.shards.tell(2)
    run(world, 1.0)
    assert (first.sent, sum(world.endpoint.sent)) == ([], 2)
    world.exporter.configure(Trace(), {})
    assert world.endpoint.closed
