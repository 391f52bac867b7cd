"""The parts that the operator's answers read are those of the shard itself."""

from tests.faults.shard import Client, Shard
from tests.shards.admin.world import parts_of


def test_counted_parts_are_the_shards_own(shard: Shard) -> None:
    parts = parts_of(shard)
    Client(shard, "c", 5)
    assert (parts.index, parts.count) == (0, 1) and parts.store is shard.store
    assert parts.router is parts.counted.router and parts.registry is parts.counted.registry
    assert [session.client_id for session in parts.registry.sessions.values()] == ["c"]
