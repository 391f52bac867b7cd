"""Before retention removes records, whoever has not read them is moved past them, and what is lost is counted."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.delivery.removal_losses import PATIENCE_SECONDS, RemovalLosses, is_behind
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.bus.world import Hand
from tests.shards.delivery.world import LASTING, counted, payloads, session_of, subscribed

MAIN = 1  # the index of the partition


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class World:
    """The losses of a removal in a shard with so many others. asked: (partition, lsn, answer) of each"""

    def __init__(self, shard: Shard, others: int = 0) -> None:
        self.count = others
        self.asked: list[tuple[int, int, Callable[[], None]]] = []
        self.hand = Hand()
        self.removed: list[dict[tuple[str, str, str], int]] = []  # what was counted when the removal began
        self.shard = shard
        parts = shard.parts
        peers: Any = self
        self.losses = RemovalLosses(
            self.hand, parts.router, parts.clients.broker.registry.sessions, parts.clients.broker.journal,
            parts.turn.steps.effects, parts.delivery.losses, peers,
        )  # fmt: skip

    def leave_behind(self, index: int, next_lsn: int, each: Callable[[], None]) -> None:
        self.asked += [(index, next_lsn, each)] * self.count

    def before_removal(self, next_lsn: int) -> None:
        self.losses.before_removal(MAIN, next_lsn, lambda: self.removed.append(counted(self.shard)))

    def settle(self) -> None:
        for _ in range(5):
            self.shard.settle()


def away(shard: Shard, client_id: str, topic_filter: str = "t") -> None:
    subscribed(shard, client_id, topic_filter, options=1, **LASTING).say(wire.disconnect())


def published(shard: Shard, count: int) -> None:
    Client(shard, "p", 5).say(*[wire.publish("t", b"%d" % n, 1, 1 + n) for n in range(count)])


def test_whoever_has_not_read_them_goes_on_behind_them_and_they_are_counted_first(shard: Shard) -> None:
    world = World(shard)
    away(shard, "c")
    published(shard, 5)
    world.before_removal(3)
    assert world.removed == [], "counting takes a turn"
    world.settle()
    assert world.removed == [{("retention", "c", "t"): 3}]
    assert payloads(Client(shard, "c", 5, **LASTING)) == [b"3", b"4"]


def test_nobody_waits_where_everybody_has_read_them(shard: Shard) -> None:
    world = World(shard)
    reader = subscribed(shard, "c", "t")
    published(shard, 5)
    world.before_removal(3)
    assert world.removed == [{}]
    assert payloads(reader) == [b"%d" % n for n in range(5)]


def test_a_shared_group_that_is_behind_loses_them_once(shard: Shard) -> None:
    world = World(shard)
    for name in ("a", "b"):
        away(shard, name, "$share/g/t")
    published(shard, 5)
    world.before_removal(3)
    world.settle()
    assert sum(world.removed[0].values()) == 3
    assert payloads(Client(shard, "a", 5, **LASTING)) == [b"3", b"4"]


def test_after_a_restart_it_is_not_counted_again(shard: Shard) -> None:
    """The journal has the place behind the removal before the removal begins."""
    world = World(shard)
    away(shard, "c")
    published(shard, 5)
    world.before_removal(3)
    world.settle()
    shard.after(5.0)
    again = Shard(shard.files.after_kill(), seed=1, now_us=shard.now_us)
    (main,) = session_of(again, "c").subscriber.readers()
    assert main.cursors[MAIN] == 3
    again.end()


def test_the_other_shards_count_what_is_lost_there_and_the_removal_waits_for_all(shard: Shard) -> None:
    world = World(shard, others=2)
    published(shard, 5)
    world.before_removal(3)
    assert [each[:2] for each in world.asked] == [(MAIN, 3)] * 2
    world.asked[0][2]()
    assert world.removed == []
    world.asked[1][2]()
    assert world.removed == [{}]


def test_a_shard_that_does_not_answer_is_waited_for_no_longer_than_that(shard: Shard) -> None:
    world = World(shard, others=1)
    published(shard, 5)
    world.before_removal(3)
    ((seconds, go),) = world.hand.waiting
    assert seconds == PATIENCE_SECONDS and world.removed == []
    go()
    assert world.removed == [{}]
    world.asked[0][2]()
    assert len(world.removed) == 1, "an answer that comes late removes nothing more"


def test_for_another_shard_its_own_readers_are_counted_here(shard: Shard) -> None:
    world = World(shard, others=1)
    away(shard, "c")
    published(shard, 5)
    world.losses.leave_behind(MAIN, 3, lambda: world.removed.append(counted(shard)))
    world.settle()
    assert world.removed == [{("retention", "c", "t"): 3}] and world.asked == []


@pytest.mark.parametrize(
    ("cursor", "live", "start", "expected"),
    [
        (4, False, None, True),
        (5, False, None, False),
        (0, True, None, False),
        (0, False, ("time", 7), False),  # where it begins is being searched
    ],
)
def test_a_reader_is_behind_if_its_place_is_known_and_below(
    cursor: int, live: bool, start: object, expected: bool
) -> None:
    reader: Any = SimpleNamespace(cursors=[cursor], is_live=lambda index: live, start=start)
    assert is_behind(reader, 0, 5) is expected
