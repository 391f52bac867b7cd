"""Rows that a reader passed without getting them are counted by reason and topic, each once."""

from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.testing.simulated_files import SimulatedFiles
from router.effects import Deliver
from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import Subscription
from router.shard import ShardRouter
from rumq.session.state.drop_counters import OTHER_TOPICS, DropCounters
from rumq.shards.delivery.undelivered_rows import NAMES_A_CHUNK, UndeliveredRows
from tests.commitlog.records import append, opened

KEY = "c"


class World:
    """A chunk of a partition; row n has topic n % topics."""

    def __init__(self, rows: int, topics: int, readers: int = 1) -> None:
        partition = opened(SimulatedFiles()).own[0]
        append(partition, [(b"t/0", b"before")] * 7)
        self.chunk = append(partition, [(b"t/%d" % (n % topics), b"x") for n in range(rows)])
        self.counters = DropCounters()
        self.rows = UndeliveredRows(self.counters, ShardRouter([partition]).feeds)
        self.group = Group(GroupKey(frozenset([Subscription("#", 1)])), 1)
        self.readers = [Reader(number, self.group, [0], KEY) for number in range(readers)]

    def effect(self, first: int = 0, denied: list[int] | None = None) -> Deliver:
        """denied: the rows that may not be received"""
        count = self.chunk.count
        places = None if denied is None else array("I", [int(row in denied) for row in range(count)])
        marks = None if denied is None else array("I", [0, 1])
        return Deliver(self.group, 0, self.chunk, first, count, self.readers, 0, (None, places, marks))

    def counted(self) -> dict[tuple[str, str], int]:
        return {(row.why, row.topic): row.records for row in self.counters.rows(None, None)}


def blob(expired: tuple[int, ...] = (), too_large: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(expired=expired, too_large=too_large)


def test_each_row_is_counted_for_its_reason_and_its_topic() -> None:
    world = World(6, 3)
    world.rows.count(world.effect(), world.readers[0], blob((0, 3, 4), (5,)), 0, 6)
    assert world.counted() == {("expired", "t/0"): 2, ("expired", "t/1"): 1, ("over_limit", "t/2"): 1}


def test_rows_outside_of_what_the_reader_has_come_to_are_not_its_own() -> None:
    """They come again, or came before."""
    world = World(6, 6)
    world.rows.count(world.effect(), world.readers[0], blob((0, 1, 2, 3, 4)), 1, 3)
    assert world.counted() == {("expired", "t/1"): 1, ("expired", "t/2"): 1}


def test_a_row_that_comes_again_because_the_socket_took_less_is_counted_once() -> None:
    world = World(4, 4)
    reader = world.readers[0]
    world.rows.count(world.effect(), reader, blob((1, 3)), 0, 4)
    reader.counted = {(0, world.chunk.base_lsn + 3)}  # as `DeliveryWindow.cut_at` says
    world.rows.count(world.effect(2), reader, blob((3,)), 2, 4)
    assert world.counted() == {("expired", "t/1"): 1, ("expired", "t/3"): 1} and reader.counted == set()


def test_rows_that_may_not_be_received_are_counted_by_topic() -> None:
    world = World(6, 3)
    world.rows.count(world.effect(denied=[0, 3, 5]), world.readers[0], blob(), 0, 6)
    assert world.counted() == {("no_permission", "t/0"): 2, ("no_permission", "t/2"): 1}


@given(st.sets(st.integers(0, 19)), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_however_often_a_chunk_comes_a_row_that_may_not_be_received_is_counted_once(
    denied: set[int], pieces: list[tuple[int, int]]
) -> None:
    """A reader goes forward, from wherever it was sent back to."""
    world = World(20, 20)
    at = 0
    for back, forward in [*pieces, (0, 20)]:
        first = max(0, at - back)
        stop = min(20, first + forward)
        world.rows.count_denied(world.effect(first, sorted(denied)), world.readers[0], first, stop)
        at = max(at, stop) if first <= at else at
    assert world.counted() == {("no_permission", f"t/{row}"): 1 for row in denied}


@pytest.mark.parametrize(("readers", "named"), [(1, NAMES_A_CHUNK), (4, NAMES_A_CHUNK // 4), (1000, 1)])
def test_so_many_topics_are_named_for_all_readers_of_a_chunk_together(readers: int, named: int) -> None:
    """A wildcard over made-up topics must not cost a row for each of them and each of a thousand clients."""
    world = World(NAMES_A_CHUNK + 44, NAMES_A_CHUNK + 44, readers)
    everything = list(range(NAMES_A_CHUNK + 44))
    world.rows.count_denied(world.effect(denied=everything), world.readers[0], 0, len(everything))
    counted = world.counted()
    assert len(counted) == named + 1 and sum(counted.values()) == len(everything), "and none is lost"
    assert counted["no_permission", OTHER_TOPICS] == len(everything) - named
