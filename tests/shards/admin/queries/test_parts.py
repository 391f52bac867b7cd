"""The parts that the operator's answers read are those of the shard itself."""

from tests.faults.shard import Client, Shard
from tests.shards.admin.world import counted_of


def test_counted_parts_are_the_shards_own(shard: Shard) -> None:
    counted, actions = counted_of(shard), shard.parts.operation.admin.handlers["shutdown"].__self__  # type: ignore[attr-defined]
    Client(shard, "c", 5)
    assert (counted.index, actions._shards) == (0, 1) and counted.store is shard.store
    assert counted.router is shard.parts.router and counted.registry is shard.parts.clients.registry
    assert [session.client_id for session in counted.registry.sessions.values()] == ["c"]
