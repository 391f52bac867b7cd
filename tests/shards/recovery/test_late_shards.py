"""For how long a shard waits for others before it begins without them, and when it cannot. Whole runs of shards that
come late are in tests/simulation/test_late_shards.py."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import StreamSpec
from rumq.session.journal.entries import OPEN_END
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.recovery.late_shards import LateShards
from tests.shards.bus.world import Hand

LAYOUT = ("main/g1/p0", "main/g1/p1")


class Undecided:
    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.told: list[tuple[int, list[tuple[str, int]]]] = []

    def begin(self, partitions: Any, sessions: Any) -> None:
        self.begun.append(partitions)

    def answered(self, shard: int, tags: list[tuple[str, int]]) -> None:
        self.told.append((shard, tags))


class Owner:
    """Of a shard's partitions."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def undecided(self, tags_from: list[int]) -> None:
        self.calls.append(("undecided", tags_from))

    def decided(self, link: object) -> None:
        self.calls.append(("decided", link))


def peer(*, is_known: bool, partitions: tuple[int, ...] = ()) -> Any:
    parts = SimpleNamespace(owner=Owner())
    found = [SimpleNamespace(index=index, is_met=is_known) for index in partitions]
    return SimpleNamespace(is_known=is_known, partitions=found, parts=parts, link="its link")


class World:
    def __init__(self, patience: float | None = 1.0, **peers: Any) -> None:
        self.clock: Any = SimpleNamespace(monotonic=100.0)
        self.undecided = Undecided()
        self.events: list[tuple[str, dict[str, Any]]] = []
        router: Any = SimpleNamespace(feeds=[])
        events: Any = SimpleNamespace(tell=lambda name, **fields: self.events.append((name, fields)))
        self.others = {int(name[1:]): each for name, each in peers.items()}
        undecided: Any = self.undecided
        self.hand = Hand()
        self.late = LateShards(patience, self.others, router, {}, undecided, self.clock, self.hand, events)


def state(**fields: Any) -> ReplayedState:
    made = ReplayedState()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_others_are_waited_for_from_when_one_could_begin() -> None:
    world = World(patience=1.0)
    assert not world.late.are_given_up()
    world.clock.monotonic += 0.99
    assert not world.late.are_given_up()
    world.clock.monotonic += 0.01
    assert world.late.are_given_up()


def test_a_broker_alone_waits_for_all_its_shards() -> None:
    world = World(patience=None)
    world.late.are_given_up()
    world.clock.monotonic += 1e6
    assert not world.late.are_given_up()


@pytest.mark.parametrize(
    ("fields", "can"),
    [
        ({}, True),  # a new shard: there is nothing that has a position
        ({"seen": [1, 2], "layout": LAYOUT, "sessions": {1: object()}}, True),
        ({"seen": [], "layout": LAYOUT, "sessions": {1: object()}}, False),  # a journal without checkpoints
        ({"seen": [1, 2], "layout": LAYOUT[:1], "sessions": {1: object()}}, False),
        ({"seen": [], "shares": {"g": object()}}, False),
    ],
)
def test_it_begins_without_them_only_where_the_journal_has_its_positions(fields: Any, can: bool) -> None:
    assert World().late.can_begin(state(**fields), LAYOUT) is can


def test_what_the_missing_shard_may_have_stored_is_undecided_until_it_answers() -> None:
    world = World(s1=peer(is_known=False, partitions=(1,)), s2=peer(is_known=True, partitions=(2,)))
    world.late.are_given_up()
    world.clock.monotonic += 1.0
    world.late.begin(state(tags_from=[5, 6, 7]), [1])
    assert world.events == [("shard.missing", {"shards": [1], "seconds": 1.0})]
    assert world.undecided.begun == [{1: [1]}]
    owner = world.others[1].parts.owner
    assert owner.calls == [("undecided", [5, 6, 7])] and not world.others[2].parts.owner.calls
    world.late.answered(1, [("tag", 3)])
    assert world.undecided.told == [(1, [("tag", 3)])] and owner.calls[1:] == [("decided", "its link")]


def test_nothing_is_told_where_everybody_is_there() -> None:
    world = World(s1=peer(is_known=True))
    world.late.are_given_up()
    world.late.begin(state(), [])
    assert not world.events and not world.undecided.begun


def test_positions_beyond_the_end_of_a_found_log_are_written_over_but_not_in_the_turn_of_its_hello() -> None:
    """What clients publish in this turn is not in the log yet: of an open packet id nobody knows whether it is safe."""
    world = World()
    written: list[str] = []
    journal = SimpleNamespace(
        flush=lambda now_us: written.append("flush"), write_snapshot=lambda now_us: written.append("snapshot")
    )
    restorer: Any = SimpleNamespace(open_ended=[], journal=journal)
    world.clock.now_us = 5
    partition = RemotePartition(StreamSpec("main", ("#",), 2), 0, 0, 1, owner=1)
    world.late._found(restorer, partition, 40, next_lsn=42, same_below=40)
    assert not world.hand.waiting, "nothing is beyond"
    world.late._found(restorer, partition, 40, next_lsn=42, same_below=30)
    assert not written
    ((_, call),) = world.hand.waiting
    call()
    assert written == ["flush", "snapshot"]


def test_what_may_have_been_sent_of_a_missing_partition_ends_where_its_log_does_once_that_is_there() -> None:
    """What comes behind it is fresh. The journal is told for who is away: a later run knows of it only from there."""
    world = World()
    left: list[Any] = []
    restorer: Any = SimpleNamespace(
        open_ended=[
            (SimpleNamespace(name=name, link=link, is_moving=is_moving), [OPEN_END, below, OPEN_END])
            for name, link, is_moving, below in (
                ("away", None, False, OPEN_END), ("here", "its link", False, OPEN_END),
                ("moving", None, True, OPEN_END), ("known", None, False, 7),
            )
        ],
        journal=SimpleNamespace(recorder=SimpleNamespace(left=left.append)),
    )  # fmt: skip
    partition = RemotePartition(StreamSpec("main", ("#",), 2), 1, 0, 1, owner=1)
    world.late._found(restorer, partition, 40, next_lsn=42, same_below=40)
    assert [below for _, below in restorer.open_ended] == [[OPEN_END, end, OPEN_END] for end in (42, 42, 42, 7)]
    assert [session.name for session in left] == ["away"]


def test_a_run_that_ends_soon_leaves_no_search_from_the_beginning() -> None:
    """The next one searches from where this one did, at least: it would find packet ids again that are long free."""
    world = World(p1=peer(is_known=True, partitions=(0, 1)), p2=peer(is_known=False, partitions=(2,)))
    partitions = [each for other in world.others.values() for each in other.partitions]
    for each in partitions:
        each.outgoing = SimpleNamespace(committed_there=4)
    world.late.searched(state(tags_from=[9, 2, 7]))
    assert [each.outgoing.committed_there for each in partitions] == [9, 4, 7]


def test_the_next_run_searches_an_owner_s_log_from_where_this_search_ended() -> None:
    """What is released meanwhile is in the journal, and would be found again as open. It never goes back."""
    world = World(p1=peer(is_known=True, partitions=(0, 1)), p2=peer(is_known=False, partitions=(2,)))
    partitions = [each for other in world.others.values() for each in other.partitions]
    for each in partitions:
        each.outgoing = SimpleNamespace(committed_there=4)
    world.late.searched_to(1, {0: 9, 1: 2, 2: 7})
    assert [each.outgoing.committed_there for each in partitions] == [9, 4, 4]
