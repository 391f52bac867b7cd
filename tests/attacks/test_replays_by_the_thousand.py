"""The attack: thousands of replays of one client that takes ten messages at a time. Each acknowledgement had all of
them try again and read for nothing, and others' replays waited behind those reads. Counted are wakings and reads."""

from typing import Any

import pytest

from router import commands as c
from router.effects import Deliver, ReadCold
from router.readers.reader_turns import READERS_AT_ONCE
from router.readers.subscription import Subscription
from tests.router.world import World

REPLAYS, RECORDS, WINDOW = 300, 340, 10


class Counting(World):
    """Counts what the router gives and reads. given: to each client by name"""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, int] = {}
        self.reads = 0

    def _carry_out(self, effect: Any, waiting: list[c.Command]) -> None:
        if isinstance(effect, Deliver):
            for reader in effect.readers:
                name = reader.sink.name if reader.sink is not None else ""  # type: ignore[attr-defined]
                self.given[name] = self.given.get(name, 0) + 1
        self.reads += isinstance(effect, ReadCold)
        super()._carry_out(effect, waiting)


@pytest.fixture
def world() -> Counting:
    """A log of which nothing is in memory."""
    made = Counting()
    for _ in range(RECORDS):
        made.publish(["a"], qos=1)
        made.commit()
    return made


def many_replays(world: Counting, count: int = REPLAYS) -> Any:
    greedy = world.client("greedy")
    world.attach(greedy)
    greedy.credit = 0
    for number in range(count):
        world.do(c.Replay(greedy.subscriber, f"$log/{number}/a", Subscription("a", 1), "earliest"))
    return greedy


def taken(client: Any) -> int:
    return sum(len(places) for places in client.got["replay"].values())


def rest(world: Counting) -> None:
    """Answer reads and what is to go on, until the client has taken what it may."""
    for _ in range(200):
        if world.cold:
            world.answer_cold()
        elif world.more:
            reader = world.more.popleft()
            if reader.sink is not None and reader.sink.credit:  # type: ignore[attr-defined]
                world.do(c.Ready(reader.sink.subscriber))  # type: ignore[attr-defined]
        else:
            return


def test_an_acknowledgement_wakes_a_few_readers_and_not_all(world: Counting) -> None:
    greedy = many_replays(world)
    rest(world)
    assert world.reads <= 2 * READERS_AT_ONCE, "few reads at once, however many replays"
    for _ in range(30):
        before, world.given = world.given, {}
        greedy.credit = 1
        world.do(c.Ready(greedy.subscriber))
        rest(world)
        # Each of the few may be given pieces of several chunks, of which the client takes one.
        assert world.given.get("greedy", 0) <= 2 * 32 * READERS_AT_ONCE
        assert before is not world.given


def test_every_replay_is_served_in_the_end_with_few_reads_for_each_message(world: Counting) -> None:
    greedy = many_replays(world, 20)
    wanted, began = 20 * RECORDS, world.reads
    for _ in range(wanted):
        greedy.credit = WINDOW
        world.do(c.Ready(greedy.subscriber))
        rest(world)
        if taken(greedy) >= wanted:
            break
    assert taken(greedy) == wanted
    assert (world.reads - began) / wanted < 1.5, "each message was read as often as there were replays"


def test_another_client_s_replay_is_served_at_once(world: Counting) -> None:
    many_replays(world)
    waiting = len(world.cold)
    assert waiting <= READERS_AT_ONCE
    other = world.client("other")
    world.attach(other)
    world.replay(other, "a")
    rest(world)
    assert taken(other) == RECORDS
