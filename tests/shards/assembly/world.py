"""A shard that is put together over a store, with threads by hand."""

from typing import Any

from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from tests.faults.shard import NoPump, Shard
from tests.shards.world import ByHand


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
