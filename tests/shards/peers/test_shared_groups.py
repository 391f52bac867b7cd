"""Shared subscriptions across shards: what a member shard and a home say to each other, and when."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import StreamSpec
from router import commands as c
from router import effects as e
from router.readers.reader import Group, GroupKey, Reader
from router.readers.shared_group import SharedGroup
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from router.shard import ShardRouter
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.peers.shared_groups import (
    JournalBarrier,
    RemoteMembers,
    SharedGroupHome,
    SharedGroups,
    ShareSink,
)
from tests.shards.bus.world import Hand, LinkEnd, decoded

KEY = "$share/g/t1"  # its home is shard 1
RANGES = [(0, 5, 9)]
NONE = memoryview(b"")


class Journal:
    def __init__(self) -> None:
        self.partition: Any = SimpleNamespace(index=7, next_lsn=1, committed_lsn=1)
        self.recorder: Any = SimpleNamespace(shared=lambda key, cursors: self.begun.append((key, cursors)))
        self.noted: list[str] = []
        self.begun: list[tuple[str, list[int]]] = []

    def shared(self, key: str) -> None:
        self.noted.append(key)

    def flush(self, now_us: int) -> None:
        self.partition.next_lsn += 1

    def commit(self) -> None:
        self.partition.committed_lsn = self.partition.next_lsn


class World:
    def __init__(self) -> None:
        self.hand, self.journal = Hand(), Journal()
        self.urgent: list[int] = []
        self.barrier = JournalBarrier(self.journal, self.hand, self.urgent.append)
        self.groups = SharedGroups(self.hand, self.hand, self.barrier, ShardRouter([]), self.hand, {})

    def said(self) -> list[Any]:
        said, self.hand.said = self.hand.said, []
        return said


@pytest.fixture
def world() -> World:
    return World()


def test_delivered_ranges_are_reported_once_the_journal_has_them(world: World) -> None:
    world.groups.carry_out(e.ReportShareDone(KEY, RANGES))
    world.groups.end_turn()
    assert not world.said() and not world.urgent
    world.journal.commit()
    world.groups.end_turn()
    assert world.said() == [(1, m.ShareDone(KEY, RANGES))]


def test_the_last_member_leaves_behind_what_was_delivered_to_it(world: World) -> None:
    """MQTT-4.8.2-5: a delivery that its home still counts as outstanding would go to another member."""
    world.groups.carry_out(e.ReportShareDone(KEY, RANGES))
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 0))
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 1))
    assert not world.said()
    world.journal.commit()
    world.groups.end_turn()
    weights = [(1, m.ShareWeight(KEY, "t1", weight)) for weight in (0, 1)]
    assert world.said() == [(1, m.ShareDone(KEY, RANGES)), *weights]


def test_what_a_home_assigns_before_it_has_heard_that_the_last_member_left_is_ignored(world: World) -> None:
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 0))
    world.groups.parts(m.ShareParts(KEY, RANGES), NONE)
    world.groups.carry_out(e.ReturnShare(KEY, RANGES, early=True))
    assert world.said() == [(1, m.ShareWeight(KEY, "t1", 0))] and not world.hand.items
    world.groups.left(m.ShareLeft(KEY), NONE)
    world.groups.parts(m.ShareParts(KEY, RANGES), NONE)
    (command,) = world.hand.items
    assert isinstance(command, c.SharePart) and command.ranges == RANGES


def test_a_home_that_is_away_is_not_waited_for(world: World) -> None:
    world.hand.away.add(1)
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 0))
    world.groups.parts(m.ShareParts(KEY, RANGES), NONE)
    assert len(world.hand.items) == 1


def test_the_home_keeps_a_group_that_a_client_here_is_about_to_join(world: World) -> None:
    """A group that ends and begins again begins behind what was acknowledged after the client's SUBACK."""
    weight_0 = [(1, m.ShareWeight(KEY, "t1", 0))]
    world.groups.will_join(KEY, "t1")
    world.groups.will_join(KEY, "t1")
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 0))
    world.groups.parts(m.ShareParts(KEY, RANGES), NONE)
    assert not world.said() and len(world.hand.items) == 1, "it may still assign something"
    assert world.groups.weights(1) == {KEY: ("t1", 1)} and world.groups.weights(0) == {}, "of a `Begin`"
    world.groups.has_joined(KEY)
    assert not world.said()
    world.groups.has_joined(KEY)
    assert world.said() == weight_0, "both are gone"
    assert world.groups.weights(1) == {}


def test_who_joins_while_the_journal_is_waited_for_keeps_the_group_at_its_home(world: World) -> None:
    world.groups.carry_out(e.ReportShareDone(KEY, RANGES))
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 0))
    world.groups.will_join(KEY, "t1")
    share = SharedGroup(KEY, "t1", Reader(0, Group(GroupKey((), False, None), 2), [0, 0], KEY), is_here=False)
    world.groups._router.sharing.shares[KEY] = share
    world.groups.carry_out(e.ReportShareWeight(KEY, "t1", 1))
    world.groups.has_joined(KEY)
    world.journal.commit()
    world.groups.end_turn()
    assert world.said() == [(1, m.ShareDone(KEY, RANGES)), (1, m.ShareWeight(KEY, "t1", 1))]


def test_where_a_group_begins_is_in_the_journal(world: World) -> None:
    """Its home may die before the next checkpoint, and what is published meanwhile is the group's."""
    world.groups.carry_out(e.ShareBegun(KEY, [5, 0]))
    assert world.journal.begun == [(KEY, [5, 0])]


def test_ranges_that_no_member_has_room_for_go_back(world: World) -> None:
    world.groups.carry_out(e.ReturnShare(KEY, RANGES))
    world.groups.carry_out(e.ReportShareReady(KEY))
    assert world.said() == [(1, m.ShareBack(KEY, RANGES, False)), (1, m.ShareReady(KEY))]


def test_what_comes_back_while_the_home_is_away_was_not_delivered(world: World) -> None:
    """A member left with messages that it had not acknowledged, and nobody else has room: the home assigns them anew.

    It takes what it is told to be delivered for delivered."""
    share = SharedGroup(KEY, "t1", Reader(0, Group(GroupKey((), False, None), 2), [0, 0], KEY), is_here=False)
    world.groups._router.sharing.shares[KEY] = share
    share.recent.extend([(0, 3, 9), (1, 7, 8)])
    world.groups.carry_out(e.ReturnShare(KEY, [(1, 7, 8)]))
    assert list(share.recent) == [(0, 3, 9), (1, 7, 8)], "the home hears of it"
    world.hand.away.add(1)
    world.groups.carry_out(e.ReturnShare(KEY, [(0, 5, 6), (0, 4, 5)]))
    assert world.groups.handed(1)[KEY] == [(0, 3, 4), (0, 6, 9), (1, 7, 8)]


def test_what_a_home_assigned_just_before_it_was_lost_is_its_own_to_assign_again(world: World) -> None:
    """Both are heard in one turn. What is read for a member meanwhile would reach it twice."""
    elsewhere = RemotePartition(StreamSpec("main", ("#",), 2), 0, 0, 1, owner=2)
    router = ShardRouter([elsewhere], is_home=lambda key: False)
    groups = SharedGroups(world.hand, world.hand, world.barrier, router, world.hand, {})
    member = Subscriber("c", None)
    member.sink = object()  # type: ignore[assignment]
    router.step([c.JoinShare(member, KEY, Subscription("t1", qos=2))])
    groups.parts(m.ShareParts(KEY, RANGES), NONE)
    router.step(world.hand.items)
    assert list(router.sharing.shares[KEY].returned) == RANGES, "it is read first"
    groups.home_lost(1)
    groups.parts(m.ShareParts(KEY, [(0, 9, 10)]), NONE)
    groups.home_lost(1)
    router.step(world.hand.items)
    assert list(router.sharing.shares[KEY].returned) == []


def test_what_was_dropped_of_an_owner_that_began_anew_goes_back_as_far_as_it_is_ours(world: World) -> None:
    world.groups.dropped(KEY, RANGES)
    assert world.said() == [(1, m.ShareBack(KEY, RANGES, True))], "no member is here any more"
    share = SharedGroup(KEY, "t1", Reader(0, Group(GroupKey((), False, None), 2), [0, 0], KEY), is_here=False)
    world.groups._router.sharing.shares[KEY] = share
    world.groups.dropped(KEY, RANGES)
    assert world.said() == [(1, m.ShareBack(KEY, RANGES, True)), (1, m.ShareReady(KEY))], "there is room as before"
    share.is_parked = True
    world.groups.dropped(KEY, RANGES)
    assert world.said() == [(1, m.ShareBack(KEY, RANGES, True))]


# The home


def home_of(world: World, *, begun: bool) -> tuple[SharedGroupHome, RemoteMembers, Any]:
    confirms: list[Callable[[], None]] = []
    interest = SimpleNamespace(has_begun=begun, confirm=lambda filters, then: not confirms.append(then))
    home = SharedGroupHome(ShardRouter([]), world.hand, world.hand, world.barrier, interest)
    return home, RemoteMembers(2, home), interest


def link() -> tuple[BusLink, LinkEnd]:
    transport = LinkEnd()
    return BusLink(transport, lambda message, raw: None, lambda why: None, lambda: None), transport


def test_a_join_is_answered_once_the_group_is_in_the_home_s_journal(world: World) -> None:
    _, members, _ = home_of(world, begun=True)
    bus, transport = link()
    members.join(bus, m.ShareJoin(4, "$share/g/t0", "t0"))
    (command,) = world.hand.items
    assert isinstance(command, c.ShareNews) and (command.what, command.weight) == ("weight", 1)
    world.hand.step()
    world.groups.end_turn()
    assert world.journal.noted == ["$share/g/t0"] and world.urgent == [7] and not transport.written
    world.journal.commit()
    world.groups.end_turn()
    assert decoded(transport.written)[0] == m.Wanted(4)


def test_a_group_that_a_client_is_about_to_join_is_there_until_it_has(world: World) -> None:
    """What is acknowledged after its SUBACK is the group's. The link to the home broke before that had answered: the
    question goes behind `Begin`, which may name no member."""
    home, members, _ = home_of(world, begun=True)
    home.interest = SimpleNamespace(has_begun=True, confirm=lambda filters, then: True)
    bus, _ = link()
    key = "$share/g/t0"
    said = {"begin": m.Begin([], {}, {}, {}), "join": m.ShareJoin(4, key, "t0")}

    def group_after(order: str) -> bool:
        for each in order.split():
            getattr(members, each)(bus, said[each])
        home.router.step(world.hand.items)
        world.hand.items = []
        return key in home.router.sharing.shares

    assert group_after("begin join")
    assert not group_after("join begin")


def test_what_is_said_before_groups_are_restored_waits_until_they_are(world: World) -> None:
    home, members, interest = home_of(world, begun=False)
    bus, _ = link()
    members.begin(bus, m.Begin([], {}, {KEY: ("t1", 2)}, {}))
    members.weight(m.ShareWeight(KEY, "t1", 3), NONE)
    assert not world.hand.items and not home.have_all_begun
    interest.has_begun = True
    members.restored()
    first, second = world.hand.items
    assert isinstance(first, c.ShareMembers) and first.prune, "every shard has said what members it has"
    assert isinstance(second, c.ShareNews) and second.weight == 3


def test_a_member_shard_that_dies_before_it_was_heeded_begins_anew(world: World) -> None:
    home, members, _ = home_of(world, begun=False)
    members.begin(link()[0], m.Begin([], {}, {}, {}))
    members.lost()
    assert not members.was_begun and not members.early
    assert isinstance(world.hand.items[0], c.ShareAway)
    assert not home.have_all_begun


def test_revoked_ranges_are_confirmed_to_the_shard_that_left(world: World) -> None:
    bus, transport = link()
    subscriber = Subscriber("shard 2 shares", None, is_shard=True)
    subscriber.sink = ShareSink(bus)
    world.groups.carry_out(e.ConfirmShareLeft(subscriber, KEY))
    assert decoded(transport.written)[0] == m.ShareLeft(KEY)
