"""Backpressure: everyone pauses at `pending_bytes_max` unwritten, bulk senders earlier if somebody waits."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.session.ports.clock import TurnClock
from rumq.shards.write_path.backpressure import SHARED_SECONDS, Backpressure
from rumq.shards.write_path.bulk_allowance import ALLOWED_MAX, BulkAllowance
from tests.shards.bus.world import Hand

MAX = 4 * ALLOWED_MAX


class Publisher:
    """A connection that has published to some partitions. is_paused: nothing is read from it"""

    def __init__(self, *partitions: int) -> None:
        self.wire = SimpleNamespace(touched=sum(1 << index for index in partitions))
        self.transport = self
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class World:
    """Two partitions. pending: unwritten bytes of each; deferred: bytes whose topics are still being matched"""

    def __init__(self, *, has_copies: bool = True) -> None:
        self.hand = Hand()
        self.sources = [SimpleNamespace(pending_bytes=0) for _ in range(2)]
        self.feeds = [SimpleNamespace(deferred_bytes=0) for _ in range(2)]
        self.awaited: set[int] = set()
        partitions = [SimpleNamespace(index=at, ack_source=source) for at, source in enumerate(self.sources)]
        store: Any = SimpleNamespace(partitions=partitions)
        self.allowance = BulkAllowance()  # of the second partition; another shard writes the first
        allowances = [None, self.allowance]
        commit: Any = SimpleNamespace(pending_bytes=17, allowance=allowances.__getitem__)
        acks: Any = SimpleNamespace(is_awaited=lambda index: index in self.awaited)
        feeds: Any = self.feeds
        self.clock = TurnClock()
        self.clock.monotonic = 1000.0
        self.uncommitted = [0, 0]
        self.backpressure = Backpressure(
            store,
            feeds,
            commit,
            acks,
            self.hand,
            self.clock,
            pending_bytes_max=MAX,
            uncommitted=self.uncommitted.__getitem__ if has_copies else None,
        )

    def pending(self, *sizes: int) -> None:
        """The turn ends with so many bytes unwritten."""
        for source, size in zip(self.sources, sizes, strict=True):
            source.pending_bytes = size
        self.backpressure.end_turn()


@pytest.mark.parametrize(
    ("size", "is_awaited", "behind", "crowded"),
    [
        (ALLOWED_MAX, True, 0, 0),
        (ALLOWED_MAX + 1, True, 0, 0b10),
        (ALLOWED_MAX + 1, False, 0, 0),
        (MAX, False, 0, 0),
        (MAX + 1, False, 0b10, 0b10),
        (MAX + 1, True, 0b10, 0b10),
    ],
)
def test_a_partition_has_a_limit_for_bulk_senders_and_one_for_everyone(
    size: int, is_awaited: bool, behind: int, crowded: int
) -> None:
    world = World()
    world.awaited = {1} if is_awaited else {0}
    world.pending(0, size)
    assert (world.backpressure.bits.behind, world.backpressure.bits.crowded) == (behind, crowded)


def test_bulk_senders_are_allowed_what_the_groups_of_this_shard_tell() -> None:
    alone, copied = World(has_copies=False), World()
    for world in (alone, copied):
        world.awaited = {0, 1}
        world.allowance.bytes = 1000
        world.pending(1001, 1001)
    assert alone.backpressure.bits.crowded == 0b10, "what another shard writes is on its way for longer"
    assert copied.backpressure.bits.crowded == 0, "what has to reach other nodes as well"


def test_what_waits_for_copies_counts_as_unwritten() -> None:
    world = World()
    world.uncommitted[1] = MAX
    world.pending(0, 0)
    assert not world.backpressure.bits.behind
    world.pending(0, 1)
    assert world.backpressure.bits.behind == 0b10


def test_records_whose_topics_are_still_being_matched_count_as_unwritten() -> None:
    world = World()
    world.feeds[0].deferred_bytes = MAX
    world.pending(1, 0)
    assert world.backpressure.bits.behind == 0b01


def test_the_operator_hears_once_that_publishers_are_slowed_and_once_that_they_go_on() -> None:
    world = World()
    world.pending(MAX + 1, 0)
    world.pending(MAX + 2, MAX + 1)
    world.pending(0, MAX + 1)
    assert world.hand.events == [("publish.slowed", {"pending_bytes": 17})]
    world.pending(0, MAX)
    world.pending(0, 0)
    assert [name for name, _ in world.hand.events] == ["publish.slowed", "publish.resumed"]


def test_a_limit_for_bulk_senders_alone_is_no_event() -> None:
    world = World()
    world.awaited = {0}
    world.pending(ALLOWED_MAX + 1, 0)
    assert world.hand.events == []


def test_a_publisher_goes_on_when_the_partitions_that_it_published_to_have_room_again() -> None:
    world = World()
    world.pending(MAX + 1, MAX + 1)
    publisher = Publisher(0)
    world.backpressure.pause_publisher(publisher, bulk=False)
    assert publisher.is_paused
    world.pending(MAX + 1, 0)
    assert publisher.is_paused
    world.pending(0, MAX + 1)
    assert not publisher.is_paused, "the other partition is none of its business"


def test_a_bulk_sender_waits_longer_than_the_others() -> None:
    world = World()
    world.awaited = {0}
    world.pending(MAX + 1, 0)
    bulk, other = Publisher(0), Publisher(0)
    world.backpressure.pause_publisher(bulk, bulk=True)
    world.backpressure.pause_publisher(other, bulk=False)
    world.pending(ALLOWED_MAX + 1, 0)
    assert (bulk.is_paused, other.is_paused) == (True, False)
    world.awaited = set()
    world.pending(ALLOWED_MAX + 1, 0)
    assert not bulk.is_paused, "nobody waits behind it any more"


def test_beside_who_sends_a_little_bulk_senders_may_have_less_unwritten() -> None:
    world = World(has_copies=False)
    world.awaited = {0, 1}
    world.allowance.bytes, world.allowance.shared_bytes = 1000, 100
    world.backpressure.bits.modest = 0b10
    world.pending(101, 101)
    assert world.backpressure.bits.crowded == 0b10
    world.pending(101, 100)
    assert not world.backpressure.bits.crowded
    world.clock.monotonic += SHARED_SECONDS
    world.pending(101, 101)
    assert not world.backpressure.bits.crowded, "nobody has sent a little for a while"


def test_beside_who_sends_a_little_bulk_senders_rest_between_their_groups() -> None:
    world = World(has_copies=False)
    world.awaited = {1}
    world.allowance.rests_until, world.allowance.rest_seconds = 1000.002, 0.002
    world.backpressure.bits.bulk = 0b10
    world.pending(0, 0)
    assert not world.backpressure.bits.crowded
    world.backpressure.bits.modest = 0b10
    world.pending(0, 0)
    assert world.backpressure.bits.crowded == 0b10
    assert world.backpressure.next_deadline() == inf, "nobody rests"
    bulk = Publisher(1)
    world.backpressure.pause_publisher(bulk, bulk=True)
    assert world.backpressure.next_deadline() == 1000.002
    world.clock.monotonic = 1000.0019
    world.pending(0, 0)
    assert bulk.is_paused
    world.clock.monotonic = 1000.002
    world.pending(0, 0)
    assert not bulk.is_paused and world.backpressure.next_deadline() == inf


def test_groups_of_others_do_not_have_bulk_senders_rest_for_ever() -> None:
    """Ten thousand who send a little keep the disk busy: each group would have them rest anew."""
    world = World(has_copies=False)
    world.awaited = {1}
    world.backpressure.bits.bulk = 0b10
    rested = 0
    for turn in range(100):
        world.clock.monotonic = now = 1000.0 + turn / 1000
        world.allowance.rests_until, world.allowance.rest_seconds = now + 0.002, 0.002
        world.backpressure.bits.modest = 0b10
        world.pending(0, 0)
        rested += world.backpressure.bits.crowded == 0b10
    assert rested == 8


def test_who_sends_a_little_to_another_partition_is_no_reason() -> None:
    world = World(has_copies=False)
    world.awaited = {0, 1}
    world.allowance.rests_until, world.allowance.rest_seconds = inf, 0.05
    world.backpressure.bits.modest, world.backpressure.bits.bulk = 0b01, 0b11
    world.pending(0, 0)
    assert not world.backpressure.bits.crowded


def test_a_limit_that_changes_counts_from_the_next_turn() -> None:
    world = World()
    world.pending(MAX, 0)
    world.backpressure.pending_bytes_max = MAX - 1
    world.pending(MAX, 0)
    assert world.backpressure.bits.behind == 0b01


SIZES = st.sampled_from([0, ALLOWED_MAX, ALLOWED_MAX + 1, MAX, MAX + 1])


@given(
    st.sets(st.integers(0, 1), min_size=1),
    st.booleans(),
    st.lists(st.tuples(SIZES, SIZES, st.sets(st.integers(0, 1)))),
)
def test_whatever_is_unwritten_a_publisher_is_paused_as_long_as_one_of_its_partitions_is_over_its_limit(
    touched: set[int], bulk: bool, turns: list[tuple[int, int, set[int]]]
) -> None:
    world = World()
    world.pending(MAX + 1, MAX + 1)
    publisher = Publisher(*touched)
    world.backpressure.pause_publisher(publisher, bulk)
    is_over = True
    for first, second, awaited in turns:
        world.awaited = awaited
        world.pending(first, second)
        sizes = (first, second)
        is_over &= any(sizes[at] > MAX or (bulk and at in awaited and sizes[at] > ALLOWED_MAX) for at in touched)
        assert publisher.is_paused is is_over
