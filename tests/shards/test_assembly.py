"""One shard, put together: every effect and every message has its part, and a message goes the whole way.

Two shards that are linked: tests/shards/test_bus_assembly.py."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from router.effects import Effect
from rumq.shards.assembly import Platform, ShardContext, build_shard
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.faults.shard import Client, NoPump, Shard
from tests.shards.world import ByHand


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), status_seconds=10)
    yield made
    made.end()


def test_every_effect_of_the_router_is_carried_out_by_some_part(shard: Shard) -> None:
    """One without would be a KeyError in the turn in which it first happens."""
    handlers = shard.parts.turn.effects._handlers
    assert {*handlers} == {*get_args(Effect)}


def test_a_message_is_stored_delivered_and_acknowledged_in_this_order(shard: Shard) -> None:
    reader, publisher = Client(shard, "r", 5), Client(shard, "p", 5)
    reader.say(wire.subscribe(1, [("t", 1)]))
    publisher.say(wire.publish("t", b"x", 1, 7))
    assert [seen.payload for seen in everything(shard.store.partitions[1])[0]] == [b"x"]
    assert [(each.kind, each.packet_id) for each in publisher.take()] == [(Kind.PUBACK, 7)]
    assert [each.payload for each in reader.take() if each.kind is Kind.PUBLISH] == [b"x"]


def test_parts_share_one_clock_one_registry_and_one_store(shard: Shard) -> None:
    parts = shard.parts
    assert parts.broker.clock is parts.clock is parts.turn.clock
    assert parts.admin.registry is parts.broker.registry
    assert parts.store is shard.store and parts.router.feeds[0].partition is shard.store.partitions[0]


def test_the_only_shard_has_no_way_to_others_and_its_status_only_if_asked_for(shard: Shard) -> None:
    assert shard.parts.fd_passing is None and shard.parts.peers.others == {}
    assert shard.parts.placement.is_here("anybody") and shard.parts.status is not None
    other = Shard(SimulatedFiles())
    assert other.parts.status is None
    other.end()


@pytest.fixture
def context() -> ShardContext:
    return ShardContext(
        linger_seconds=0.25,
        pending_bytes_max=7,
        free_bytes_min=8,
        free_percent_min=9,
        wanted_free_percent_min=5,
    )


class Built:
    """A shard over the store of another one, with threads by hand. names: of its threads"""

    def __init__(self, shard: Shard, context: ShardContext) -> None:
        self.names: list[str] = []
        self.watched: list[int] = []

        def worker(name: str, failed: Any) -> Any:
            self.names.append(name)
            return ByHand()

        built = self

        class Pump(NoPump):
            def watch(self, fd: int, callback: object, mask: int = 0) -> None:
                built.watched.append(fd)

        platform = Platform(lambda *_, **__: None, Pump, clock=lambda: (1, 2.0), worker=worker)
        self.parts = build_shard(shard.store, context, platform)


def test_settings_reach_their_parts(shard: Shard, context: ShardContext) -> None:
    parts = Built(shard, context).parts
    assert parts.commit.linger == 0.25 and parts.backpressure.pending_bytes_max == 7
    assert parts.admission.free_bytes_min == 8 and parts.disk.reserve == 8
    settings = parts.disk.settings
    assert (settings.percent, settings.wanted_percent, settings.is_first) == (9, 5, True)


def test_a_shard_writes_on_one_worker_and_reads_on_another_and_the_pump_watches_both(
    shard: Shard, context: ShardContext
) -> None:
    built = Built(shard, context)
    assert built.names == ["rumq-write", "rumq-read"] and len(built.watched) == 2
    assert built.parts.workers.writer is not built.parts.workers.reader
    assert (built.parts.clock.now_us, built.parts.clock.monotonic) == (1, 2.0)
