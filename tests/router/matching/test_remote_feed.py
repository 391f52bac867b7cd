"""A partition of another shard, as its records come: nothing seen twice, holes passed over, marks in step with them."""

from typing import Any, ClassVar

import pytest

from commitlog import Chunk, NotInMemory
from router import commands as c
from router.effects import Deliver, ReadCold
from router.matching.groups import GroupTable
from router.matching.remote_feed import FilteredRange, RemoteFeed
from router.readers.reader import GroupKey, Reader
from router.readers.shared_group import SharedGroup
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from router.recovery import Recovery
from router.shard import ShardRouter


class Elsewhere:
    is_mirrored = True
    next_lsn = first_lsn = 0
    topic_names: ClassVar[list[bytes]] = []

    def read(self, lsn: int, bytes_max: int) -> list[Any]:
        raise NotInMemory(lsn)


def chunk(base_lsn: int, count: int) -> Chunk:
    return Chunk(base_lsn, count, 0, 0, bytes(32 * count), b"x" * count)


def feed(next_lsn: int = 100) -> RemoteFeed:
    made = RemoteFeed(0, Elsewhere(), GroupTable(1))
    made.start_at(next_lsn)
    return made


def test_what_was_left_out_is_a_hole_up_to_what_follows() -> None:
    mirror = feed()
    first, second = chunk(110, 5), chunk(130, 5)
    assert mirror.chunk_arrived(first) == [first] and mirror.chunk_arrived(second) == [second]
    assert mirror.visible_lsn == 135
    assert mirror.maybe_chunk(100) == FilteredRange(100, 110)
    assert mirror.maybe_chunk(112) is first
    assert mirror.maybe_chunk(120) == FilteredRange(120, 130)
    assert mirror.maybe_chunk(134) is second
    mirror.watermark_moved(150, 0)
    assert mirror.maybe_chunk(140) == FilteredRange(140, 150)
    assert mirror.maybe_chunk(99) is None, "before the feed began its owner must be asked"


def test_a_chunk_that_comes_again_is_not_shown_again() -> None:
    mirror = feed()
    mirror.chunk_arrived(chunk(110, 5))
    assert mirror.chunk_arrived(chunk(110, 5)) == []
    assert mirror.chunk_arrived(chunk(100, 5)) == []


def test_those_who_learn_offsets_see_a_chunk_once_it_is_committed() -> None:
    mirror = feed()
    first, second = chunk(100, 5), chunk(105, 5)
    mirror.chunk_arrived(first)
    mirror.chunk_arrived(second)
    assert mirror.watermark_moved(110, 104) == [] and mirror.committed_lsn == 100
    assert mirror.watermark_moved(110, 105) == [first] and mirror.committed_lsn == 105
    assert mirror.watermark_moved(120, 130) == [second]
    assert mirror.committed_lsn == 120, "not beyond what has been sent"


def test_after_the_owner_lost_its_end_lsns_begin_anew() -> None:
    mirror = feed()
    mirror.chunk_arrived(chunk(100, 10))
    mirror.truncate(105)
    again = chunk(105, 3)
    assert mirror.chunk_arrived(again) == [again] and mirror.visible_lsn == 108
    assert mirror.maybe_chunk(102) is None


def test_whole_chunks_of_different_readers_do_not_take_each_others_place() -> None:
    mirror = feed(1000)
    runs = [[chunk(100 * n, 10), chunk(100 * n + 10, 10)] for n in range(4)]
    for run in runs:
        mirror.cache_cold(list(run))
    for run in runs:
        for each in run:
            assert mirror.maybe_chunk(each.base_lsn + 3) is each
    assert mirror.maybe_chunk(50) is None


def test_what_is_kept_is_bounded_and_what_goes_is_asked_for() -> None:
    mirror = feed(0)
    for n in range(400):
        mirror.chunk_arrived(Chunk(n, 1, 0, 0, bytes(32), bytes(1 << 17)))
    assert mirror.maybe_chunk(0) is None
    assert mirror.maybe_chunk(399) is not None
    assert sum(mirror.maybe_chunk(n) is not None for n in range(400)) < 300


def test_a_share_forgets_lsns_that_will_be_given_out_again() -> None:
    """What waited of them would come twice, and what members had of them would be taken for what comes now."""
    groups = GroupTable(1)
    share = SharedGroup(
        "$share/g/#", "#", Reader(1, groups.private(GroupKey(frozenset())), [120], "$share/g/#"), is_here=False
    )
    reader = Reader(2, groups.private(GroupKey(frozenset())), [0], share.key)
    member = share.add(Subscriber("a", None), reader)
    share.returned.extend([(0, 90, 110), (0, 111, 112), (1, 111, 112)])
    share.recent.append((0, 80, 120))
    member.given, member.before, member.outstanding = [(0, 104, 106)], [(0, 105, 106)], [(0, 99, 101)]
    share.truncate(0, 105)
    assert list(share.returned) == [(0, 90, 105), (1, 111, 112)]
    assert list(share.recent) == [(0, 80, 105)]
    assert (member.given, member.before, member.outstanding) == ([(0, 104, 105)], [], [(0, 99, 101)])
    assert share.reader.cursors == [105]


SINK: Any = object()


class Mirrored(Elsewhere):
    topic_names: ClassVar[list[bytes]] = [b"a"]


def test_a_share_waits_for_records_below_those_that_members_elsewhere_have_had() -> None:
    """Its home knows the partition up to lsn 2, as at a start without the owner; members elsewhere have had lsn 5."""
    key, shard = "$share/g/#", Subscriber("shard 1 shares", None, is_shard=True)
    router = ShardRouter([Mirrored()])
    mirror = router.feeds[0]
    assert isinstance(mirror, RemoteFeed)
    mirror.start_at(2)
    Recovery(router.subscribing).share(key, "#", [2], [(0, 1, 2)], list)
    mirror.cache_cold([chunk(0, 2)])
    assert given(router, c.ShareMembers(shard, SINK, {key: ("#", 1)}, {key: [(0, 5, 6)]}, True)) == [(1, 2)]
    assert given(router, c.RemoteWatermark(0, 2, 2)) == []
    assert given(router, c.RemoteChunk(0, chunk(2, 6)), c.RemoteWatermark(0, 8, 8)) == [(2, 5), (6, 8)]
    assert given(router, c.RemoteChunk(0, chunk(8, 1))) == [(8, 9)], "it is at the end"


@pytest.mark.parametrize("between", [(), (c.ShareAway,)])
def test_what_is_assigned_in_the_turn_in_which_a_link_is_made_anew_goes_over_one_of_them(between: Any) -> None:
    """The home has heard two of a shard's links: what went nowhere over the first is assigned again."""
    key, shard = "$share/g/#", Subscriber("shard 1 shares", None, is_shard=True)
    router = ShardRouter([Mirrored()])
    mirror = router.feeds[0]
    assert isinstance(mirror, RemoteFeed)
    mirror.start_at(2)
    Recovery(router.subscribing).share(key, "#", [0], [], list)
    mirror.cache_cold([chunk(0, 2)])
    again: Any = object()
    members = {key: ("#", 1)}
    effects = router.step(
        [
            c.ShareMembers(shard, SINK, members, {}, True),
            *(make(shard) for make in between),
            c.ShareMembers(shard, again, members, {}, True),
        ]
    )
    sent = [e for e in effects if isinstance(e, Deliver) and any(reader.sink is not None for reader in e.readers)]
    assert [(e.chunk.base_lsn + e.first, e.chunk.base_lsn + e.stop) for e in sent] == [(0, 2)]
    assert [reader.sink for reader in sent[0].readers] == [again]


def given(router: ShardRouter, *commands: c.Command) -> list[tuple[int, int]]:
    """The lsns that are handed out, from and up to."""
    effects = [effect for effect in router.step(list(commands)) if isinstance(effect, Deliver)]
    return [(each.chunk.base_lsn + each.first, each.chunk.base_lsn + each.stop) for each in effects]


def test_a_share_drops_what_comes_back_of_records_that_were_never_written() -> None:
    """Their lsns are above its cursor, which was lowered when its home heard that the owner began anew."""
    key, shard = "$share/g/#", Subscriber("shard 1 shares", None, is_shard=True)
    router = ShardRouter([Mirrored()])
    mirror = router.feeds[0]
    assert isinstance(mirror, RemoteFeed)
    mirror.start_at(2)
    Recovery(router.subscribing).share(key, "#", [2], [(0, 4, 5)], list)
    assert given(router, c.ShareMembers(shard, SINK, {key: ("#", 1)}, {}, True)) == []
    assert given(router, c.RemoteChunk(0, chunk(2, 6)), c.RemoteWatermark(0, 8, 8)) == [(2, 8)]


def test_a_share_that_is_held_does_not_end_before_every_shard_has_said_which_members_it_has() -> None:
    """A client of one shard was about to join when its link broke; another shard, which is missing, has a member."""
    key = "$share/g/#"
    joining, missing = (Subscriber(f"shard {n} shares", None, is_shard=True) for n in (1, 2))
    router = ShardRouter([Mirrored()])
    mirror = router.feeds[0]
    assert isinstance(mirror, RemoteFeed)
    mirror.start_at(2)
    Recovery(router.subscribing).share(key, "#", [1], [], list)
    mirror.cache_cold([chunk(0, 2)])
    router.sharing.hold()
    router.step([c.ShareNews(joining, "weight", key, "#", 1, [])])
    assert given(router, c.ShareMembers(joining, SINK, {}, {}, False)) == [] and key in router.sharing.shares
    assert given(router, c.ShareMembers(missing, SINK, {key: ("#", 1)}, {}, True)) == [(1, 2)]


def test_what_a_home_assigns_and_its_owner_does_not_have_is_asked_for_once() -> None:
    """The owner died before it wrote lsn 4. Its successor reads nothing there, however often it is asked."""
    key, client = "$share/g/#", Subscriber("a", None)
    router = ShardRouter([Mirrored()], is_home=lambda key: False)
    mirror = router.feeds[0]
    assert isinstance(mirror, RemoteFeed)
    mirror.start_at(2)
    router.step([c.Attach(client, SINK), c.JoinShare(client, key, Subscription("#", 1))])
    asked = router.step([c.SharePart(key, [(0, 4, 5)])])
    assert [effect.lsn for effect in asked if isinstance(effect, ReadCold)] == [4]
    answered = [*router.step([c.ColdChunks(0, 4, [])]), *router.step([])]
    assert not any(isinstance(effect, ReadCold) for effect in answered)
    assert given(router, c.RemoteChunk(0, chunk(2, 6)), c.RemoteWatermark(0, 8, 8)) == []
    assert given(router, c.ColdChunks(0, 4, [chunk(2, 6)])) == [(4, 5)], "it is there now"
