"""$SYS: shard 0 publishes what has changed, the other shards send it their numbers."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from commitlog import StreamSpec
from commitlog.write.volatile import VolatilePartition
from router import commands as c
from rumq.shards.bus import messages as m
from rumq.shards.bus.shard_tally import Counts, Standing
from rumq.shards.retention.disk_space import DiskStatistics
from rumq.shards.stats.sys_publisher import SysPublisher, SysStatus
from tests.shards.bus.world import Hand

DISK = DiskStatistics(None, None, 0, 0.0, None, False, 0)


class World:
    def __init__(self, index: int) -> None:
        self.hand = Hand(index)
        self.connected = 3
        self.sent: list[Any] = []
        self.is_linked = True
        self.bridges: dict[str, bool] = {}
        other: Any = SimpleNamespace(say=lambda message: not self.sent.append(message))
        peers: Any = SimpleNamespace(others={1 - index: other}, is_linked=lambda shard: self.is_linked)
        counters: Any = SimpleNamespace(count=self._count, shard=SimpleNamespace(index=index))
        partition = VolatilePartition(StreamSpec("_sys", (), 1, "memory"), 0, now_us=0)
        self.publisher = SysPublisher(
            counters, partition, peers, self.hand, self.hand, self.hand, lambda: DISK,
            SysStatus(10.0, "rumq version 1", self.hand.monotonic, lambda: self.bridges),
        )  # fmt: skip

    def _count(self, done: Callable[[m.Tally], None]) -> None:
        done(m.Tally(self.hand.index, 1, Counts(), Standing(connected=self.connected)))

    def published(self) -> int:
        """How many topics the last publication has."""
        append = self.hand.items[-2]
        assert isinstance(append, c.Appended) and isinstance(self.hand.items[-1], c.Committed)
        return append.chunk.count


def test_only_texts_that_have_changed_are_published_again() -> None:
    world = World(0)
    world.publisher.begin()
    assert world.published() > 20
    before = len(world.hand.items)
    world.publisher.begin()
    assert len(world.hand.items) == before, "nothing has changed"
    world.connected = 4
    world.publisher.begin()
    assert 0 < world.published() < 10


def test_other_shards_send_theirs_and_one_that_is_away_has_no_clients() -> None:
    world = World(0)
    world.publisher.received(m.Tally(1, 5, Counts(published=4), Standing(connected=2)))
    world.publisher.begin()
    assert world.publisher._published["$SYS/broker/clients/connected"] == "5"
    world.is_linked = False
    world.publisher.begin()
    assert world.publisher._published["$SYS/broker/clients/connected"] == "3"
    assert world.publisher._published["$SYS/broker/publish/messages/received"] == "4"


def test_a_shard_that_is_not_the_first_publishes_nothing() -> None:
    world = World(1)
    world.publisher.begin()
    assert not world.hand.items and isinstance(world.sent[0], m.Tally)
    assert world.hand.waiting[0][0] == 10.0


def test_a_bridge_is_1_while_it_is_connected_and_0_else_also_once_it_is_gone() -> None:
    """As mosquitto says it to who watches it there."""
    world = World(0)
    topic = "$SYS/broker/connection/centre/state"
    for bridges, text in (({"centre": False}, "0"), ({"centre": True}, "1"), ({}, "0")):
        world.bridges = bridges
        world.publisher.begin()
        assert world.publisher._published[topic] == text
