"""A partition of another shard: names, watermarks, and what its owner's start means here."""

from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from commitlog import NotInMemory, StreamSpec
from router import commands as c
from router.readers.range_queue import Range
from router.readers.reader import Group, GroupKey, Reader
from router.readers.shared_group import SharedGroup
from router.shard import ShardRouter
from rumq.shards.bus import messages as m
from rumq.shards.bus.remote_partition import OwnerShard, RemoteFeeds, RemotePartition
from tests.shards.bus.world import Hand

SPEC = StreamSpec("main", ("#",))


class World:
    def __init__(self, sessions: Any = MappingProxyType({}), journal: Any = None) -> None:
        self.hand = Hand()
        self.partition = RemotePartition(SPEC, 0, 0, 1, owner=1)
        self.router = ShardRouter([self.partition])
        self.acknowledged: list[int] = []
        self.limits: list[Any] = []
        no_tracer: Any = None
        limits: Any = SimpleNamespace(
            elsewhere=lambda *state: self.limits.append(state), is_offline_elsewhere=lambda index: False
        )
        self.owner = OwnerShard(
            [self.partition],
            RemoteFeeds(self.router, sessions, None, journal, self.hand),
            self.hand,
            limits,
            limits,
            self.acknowledged.append,
            no_tracer,
        )
        self.said: list[Any] = []
        self.link: Any = SimpleNamespace(say=lambda message, *raw: self.said.append(message))


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_read_by_way_of_its_owner(world: World) -> None:
    with pytest.raises(NotInMemory):
        world.partition.read(0)


def test_a_topic_id_that_its_owner_gives_out_anew_has_the_new_name(world: World) -> None:
    world.partition.name_topics([(0, b"a"), (2, b"c")])
    world.partition.name_topics([(2, b"d")])
    assert world.partition.topic_names == [b"a", b"", b"d"]
    assert world.partition.topic_ids == {b"a": 0, b"d": 2}


def test_readers_begin_where_the_owner_stands_when_it_joins_first(world: World) -> None:
    world.owner.joined(world.link, m.Hello(1, 77, {0: (3, 40)}))
    assert (world.partition.first_lsn, world.partition.next_lsn) == (3, 40)
    assert world.router.feeds[0].visible_lsn == 40


def test_records_that_an_owner_did_not_live_to_write_are_forgotten_here(world: World) -> None:
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}))
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 30)}))
    assert world.router.feeds[0].visible_lsn == 30 and world.partition.next_lsn == 30


def test_lsns_that_were_given_out_again_before_the_owner_was_met_are_others_records(world: World) -> None:
    """A run showed records up to 40 and wrote 30 of them; the next one is met when it has written up to 42."""
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}, {0: [(1, 0)]}))
    world.owner.joined(world.link, m.Hello(1, 88, {0: (0, 42)}, {0: [(1, 0), (2, 30)]}))
    assert world.router.feeds[0].visible_lsn == 30 and world.partition.next_lsn == 30


def test_a_run_that_was_never_met_counts_as_well(world: World) -> None:
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}, {0: [(1, 0)]}))
    world.owner.joined(world.link, m.Hello(1, 99, {0: (0, 60)}, {0: [(1, 0), (2, 30), (3, 50)]}))
    assert world.router.feeds[0].visible_lsn == 30


def test_what_the_home_of_a_group_assigned_of_a_successor_that_is_not_met_yet_goes_back(world: World) -> None:
    """The home has met it, and counts the range as this shard's: dropped in silence, its messages reach nobody."""
    dropped: list[tuple[str, list[Range]]] = []
    key, feeds = "$share/g/a", RemoteFeeds(world.router, {}, lambda key, ranges: dropped.append((key, ranges)))
    feeds.owner_joined(world.partition, 0, 40, 40)
    here, away = (
        SharedGroup(key, "a", Reader(0, Group(GroupKey((), False, None), 1), [0], key), is_here=is_here)
        for is_here in (True, False)
    )
    for share in (here, away):
        share.returned.extend([(0, 20, 31), (0, 35, 36)])
    world.router.sharing.shares |= {"here": here, key: away}
    feeds.owner_joined(world.partition, 0, 42, 30)
    assert dropped == [(key, [(0, 30, 31), (0, 35, 36)])]
    assert list(here.returned) == list(away.returned) == [(0, 20, 30)]


@pytest.mark.parametrize(("incarnation", "starts"), [(77, [(1, 0), (2, 30)]), (88, [(2, 30), (3, 42)])])
def test_what_the_owner_still_has_is_not_sent_twice(
    world: World, incarnation: int, starts: list[tuple[int, int]]
) -> None:
    """The same run over another link; a run that began behind all that was shown."""
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}, {0: [(1, 0), (2, 30)]}))
    world.owner.joined(world.link, m.Hello(1, incarnation, {0: (0, 42)}, {0: starts}))
    assert world.router.feeds[0].visible_lsn == 40


def test_what_was_published_and_not_acknowledged_is_asked_for_first(world: World) -> None:
    world.partition.outgoing.append(bytearray(32), b"f", 1, 0, b"")
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 0)}))
    assert world.said == [m.Resume(0, 0)] and world.owner.unacknowledged_bytes
    world.owner.resumed(world.link, m.Resumed(0, 2))
    assert not world.owner.unacknowledged_bytes and world.acknowledged == [0]


def test_watermarks_and_records_become_commands(world: World) -> None:
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 10)}))
    world.owner.rows(m.Rows(0, 10, 1, 5, 0, [(0, b"a")], 4), memoryview(b"rowsframes"))
    world.owner.mark(m.Mark(0, 0, 11, 11, 2), memoryview(b""))
    rows, mark = world.hand.items
    assert isinstance(rows, c.RemoteChunk) and (rows.chunk.base_lsn, rows.chunk.frames) == (10, b"frames")
    assert isinstance(mark, c.RemoteWatermark) and (mark.live_lsn, mark.committed_lsn) == (11, 11)
    assert world.partition.first_lsn == 2 and world.partition.topic_names == [b"a"]


def test_an_owner_says_that_it_stops_and_perhaps_that_it_goes_on(world: World) -> None:
    outgoing = world.partition.outgoing
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 10)}))
    world.owner.mark(m.Mark(0, 0, 11, 11, 2, True), memoryview(b""))
    assert outgoing.has_shown_none
    world.owner.mark(m.Mark(0, 0, 11, 11, 2), memoryview(b""))
    assert not outgoing.has_shown_none
    world.owner.mark(m.Mark(0, 0, 11, 11, 2, True), memoryview(b""))
    world.owner.lost()
    world.owner.mark(m.Mark(0, 0, 11, 11, 2), memoryview(b""))  # of its successor, which has been handed nothing yet
    assert outgoing.has_shown_none


def test_refusals_of_an_owner_end_with_its_link(world: World) -> None:
    world.owner.retained_full(m.RetainedFull(0, True), memoryview(b""))
    world.owner.lost()
    assert world.limits == [(0, True), (0, False)]


def test_a_successor_is_not_held_to_the_refusals_of_a_disk_that_was_full(world: World) -> None:
    """Its disk may be another one: it would not take back what it never said.

    While there is none they stay: a stop does not wait for what cannot be written."""
    world.owner.refusing(m.Refusing(0, True, "offline"), memoryview(b""))
    world.owner.lost()
    assert (0, False, "") not in world.limits
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 0)}))
    assert world.limits[-1] == (0, False, "")


def test_readers_that_began_without_the_owner_go_on_where_the_last_run_stood(world: World) -> None:
    """Not where the owner stands: what it took before it was met is to come."""
    found: list[tuple[int, int]] = []
    feeds = RemoteFeeds(world.router, {})
    feeds.begin_without(world.partition, 30, lambda *ends: found.append(ends))
    assert world.partition.is_met, "a SUBACK does not wait for it for ever"
    world.owner.joined(world.link, m.Hello(1, 77, {0: (3, 40)}))
    assert world.router.feeds[0].visible_lsn == 30 and found == [(40, 40)]
    world.owner.joined(world.link, m.Hello(1, 77, {0: (3, 50)}))
    assert found == [(40, 40)], "it is late once"


def test_an_owner_with_less_than_the_last_run_knew_counts(world: World) -> None:
    found: list[tuple[int, int]] = []
    RemoteFeeds(world.router, {}).begin_without(world.partition, 30, lambda *ends: found.append(ends))
    world.owner.joined(world.link, m.Hello(1, 77, {0: (3, 20)}))
    assert world.router.feeds[0].visible_lsn == 20 and found == [(20, 20)]


def test_a_shard_that_begins_knows_of_which_run_its_positions_are(world: World) -> None:
    """Of one that showed records up to 40 and wrote 30 of them; the next one is met when it has written up to 42."""
    world.partition.run.known = (77, 1)
    world.owner.joined(world.link, m.Hello(1, 88, {0: (0, 42)}, {0: [(1, 0), (2, 30)]}))
    assert (world.partition.next_lsn, world.partition.run.same_below) == (42, 30)
    assert world.router.feeds[0].visible_lsn == 42, "what comes from there on is to come"
    world.owner.joined(world.link, m.Hello(1, 99, {0: (0, 50)}, {0: [(1, 0), (2, 30), (3, 25)]}))
    assert (world.partition.next_lsn, world.partition.run.same_below) == (25, 25)


def test_so_does_one_that_begins_without_the_owner(world: World) -> None:
    found: list[tuple[int, int]] = []
    world.partition.run.known = (77, 1)
    RemoteFeeds(world.router, {}).begin_without(world.partition, 40, lambda *ends: found.append(ends))
    world.owner.joined(world.link, m.Hello(1, 88, {0: (0, 42)}, {0: [(1, 0), (2, 30)]}))
    assert world.router.feeds[0].visible_lsn == 30 and found == [(42, 30)]


class Journal:
    """In the place of `JournalWriter`. noted: client ids that were noted as away, and checkpoints"""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.recorder: Any = SimpleNamespace(left=lambda session: self.noted.append(session.key))

    def write_checkpoint(self) -> None:
        self.noted.append("checkpoint")


def begin_turn(world: World) -> None:
    calls, world.hand.waiting = world.hand.waiting, []
    for _, call in calls:
        call()


def session(key: str, cursor: int, *, is_here: bool = False) -> Any:
    reader = SimpleNamespace(cursors=[cursor])
    return SimpleNamespace(
        key=key, link=SimpleNamespace(flow=SimpleNamespace(aliases=None)) if is_here else None, is_moving=False,
        subscriber=SimpleNamespace(readers=lambda: [reader]),
    )  # fmt: skip


def test_the_journal_has_lower_positions_before_it_has_any_of_the_next_run() -> None:
    """A crash of this shard finds them there: those of clients that are away are in no checkpoint."""
    journal = Journal()
    sessions = {name: session(name, at, is_here=name == "here") for name, at in (("a", 35), ("b", 30), ("here", 35))}
    world = World(sessions, journal)
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}, {0: [(1, 0)]}))
    assert journal.noted == [], "what clients publish in this turn may have packet ids, and is not in the log"
    begin_turn(world)
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}, {0: [(1, 0)]}))
    begin_turn(world)
    assert journal.noted == ["checkpoint"], "once of each run"
    world.owner.joined(world.link, m.Hello(1, 88, {0: (0, 42)}, {0: [(1, 0), (2, 30)]}))
    begin_turn(world)
    assert journal.noted == ["checkpoint", "a", "checkpoint"]
    assert [each.subscriber.readers()[0].cursors for each in sessions.values()] == [[30]] * 3


def test_nothing_is_handed_over_before_the_owner_has_said_what_it_has(world: World) -> None:
    world.owner.undecided([7])
    outgoing = world.partition.outgoing
    outgoing.append(bytearray(32), b"", 1, 0, b"")
    world.owner.joined(world.link, m.Hello(1, 77, {0: (0, 40)}))
    world.owner.mark(m.Mark(0, 0, 40, 40, 0), memoryview(b""))
    assert world.said == [] and outgoing.committed_there == 7, "a checkpoint names what was not searched"
    world.owner.decided(world.link)
    assert [type(message) for message in world.said] == [m.PublishedRecords]
