"""What the parts of a shard have in common."""

from tests.faults.shard import Shard
from tests.shards.assembly.world import Built


def test_parts_share_one_clock_one_registry_and_one_store(shard: Shard) -> None:
    parts = shard.parts
    assert parts.clients.broker.clock is parts.clock is parts.turn.clock
    assert parts.clients.broker.registry is parts.clients.registry
    assert parts.store is shard.store and parts.router.feeds[0].partition is shard.store.partitions[0]


def test_a_shard_writes_on_one_worker_and_reads_on_another(built: Built) -> None:
    assert built.names == ["rumq-write", "rumq-read"]
    assert built.parts.writing.workers.writer is not built.parts.writing.workers.reader
    assert (built.parts.clock.now_us, built.parts.clock.monotonic) == (1, 2.0)


def test_the_only_shard_has_no_way_to_others(shard: Shard) -> None:
    assert shard.parts.cluster.fd_passing is None and shard.parts.cluster.peers.others == {}
    assert shard.parts.cluster.placement.is_here("anybody")
