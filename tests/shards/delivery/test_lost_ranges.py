"""Ranges that readers lost are counted by topic: of each range the records that their filters match, each once."""

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog import Chunk, Gap
from commitlog.testing.simulated_files import SimulatedFiles
from router.effects import RecordsLost
from router.readers.reader import Group, GroupKey
from router.readers.subscription import Subscription
from rumq.mqtt.topics import matches
from rumq.session.state.drop_counters import OTHER_TOPICS
from rumq.shards.delivery import lost_ranges
from rumq.shards.delivery.lost_ranges import MISSED_MAX, Count, Loser, ReaderSelection
from tests.commitlog.records import append, opened
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, counted, permit, ruled, session_of, subscribed

MAIN = 1  # the index of the partition


def asked(*filters: str) -> ReaderSelection:
    return ReaderSelection(Group(GroupKey(frozenset(Subscription(each) for each in filters)), 1))


# One count


class Told:
    """What a loser is told. wanted: by topic; unknown: records whose topics nobody knows"""

    def __init__(self, first: int, *filters: str) -> None:
        self.filters = filters
        self.wanted: Counter[str] = Counter()
        self.unknown = -1
        self.loser = Loser(first, asked(*filters), self._told)

    def _told(self, wanted: Counter[str], denied: Counter[str], unknown: int) -> None:
        assert not denied
        self.wanted, self.unknown = wanted, unknown


FILTERS = st.sampled_from(["#", "a/#", "a/+", "+/0", "a/0", "b/1", "none"])
NAMES = ["a/0", "a/1", "b/0", "b/1"]


@given(
    st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6) | st.integers(1, 5), max_size=6),
    st.lists(st.tuples(st.integers(0, 30), st.lists(FILTERS, min_size=1, max_size=3, unique=True)), max_size=4),
    st.integers(0, 30),
)
def test_each_loser_is_told_the_records_that_its_filters_match_from_its_own_place_on(
    pieces: list[list[str] | int], losers: list[tuple[int, list[str]]], stop: int
) -> None:
    """pieces: the topics of a chunk, or the size of a gap"""
    partition = opened(SimulatedFiles()).own[0]
    log: list[str | None] = []
    chunks: list[Any] = []
    for piece in pieces:
        if isinstance(piece, int):
            chunks.append(Gap(len(log), len(log) + piece, "damaged"))
            log += [None] * piece
        else:
            made = append(partition, [(name.encode(), b"x") for name in piece])
            chunks.append(Chunk(len(log), made.count, made.base_ts, made.flags, made.rows, made.frames))
            log += piece
    stop = min(stop, len(log))
    told = [Told(min(first, stop), *filters) for first, filters in losers]
    count = Count(0, stop, "retention")
    count.losers += [each.loser for each in told]
    count.begin()
    for chunk in chunks:
        if chunk.next_lsn > count.lsn < stop:
            count.take(chunk)
    count.skip(stop)
    for _ in count.tell(partition.topic_names):
        pass
    for each in told:
        lost = log[each.loser.first : stop]
        wanted = Counter(name for name in lost if name and any(matches(f, name) for f in each.filters))
        assert (each.wanted, each.unknown) == (wanted, lost.count(None))


def test_telling_many_losers_is_spread_over_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_ranges, "CHECKS_A_TURN", 10)
    partition = opened(SimulatedFiles()).own[0]
    chunk = append(partition, [(b"t/%d" % n, b"x") for n in range(25)])
    told = [Told(0, "#"), Told(0, "t/1")]
    count = Count(0, 25, "retention")
    count.losers += [each.loser for each in told]
    count.begin()
    count.take(chunk)
    assert len(list(count.tell(partition.topic_names))) == 2 * 25 // 10
    assert [sum(each.wanted.values()) for each in told] == [25, 1]


# In a shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def published(shard: Shard, count: int, *topics: str) -> None:
    """A message for each topic in turn, so many in all."""
    publisher = Client(shard, "p", 5)
    publisher.say(*[wire.publish(topics[n % len(topics)], b"x", 1, 1 + n) for n in range(count)])


def away(shard: Shard, client_id: str, *filters: str) -> None:
    subscribed(shard, client_id, *filters, options=1, **LASTING).say(wire.disconnect())


def lost(shard: Shard, client_id: str, first: int, stop: int, why: str = "retention") -> None:
    """As the router reports it."""
    reader = session_of(shard, client_id).subscriber.main
    assert reader is not None
    shard.parts.delivery.losses.lost(RecordsLost(reader, MAIN, first, stop, why))


def settled(shard: Shard) -> None:
    for _ in range(10):
        shard.settle()
    assert shard.parts.delivery.losses.uncounted == 0


@pytest.mark.parametrize("why", ["retention", "damaged", "backlog_records_max"])
def test_what_is_lost_is_counted_by_topic_for_its_reason(shard: Shard, why: str) -> None:
    away(shard, "c", "a/#")
    published(shard, 9, "a/0", "a/1", "b")
    lost(shard, "c", 1, 8, why)
    assert shard.parts.delivery.losses.uncounted == 1 and counted(shard) == {}, "it is read in the turns that follow"
    settled(shard)
    assert counted(shard) == {(why, "c", "a/0"): 2, (why, "c", "a/1"): 3}


def test_what_cannot_be_read_any_more_is_counted_without_a_topic(shard: Shard) -> None:
    away(shard, "c", "a/#")
    published(shard, 3, "a/0")
    lost(shard, "c", 1, 10)
    settled(shard)
    assert counted(shard) == {("retention", "c", "a/0"): 2, ("retention", "c", OTHER_TOPICS): 7}


def test_what_it_might_not_have_received_is_counted_as_that(shard: Shard) -> None:
    policy = ruled(shard, "a/#")
    away(shard, "c", "#")
    permit(policy, "#")
    published(shard, 4, "a/0", "b")
    lost(shard, "c", 0, 4)
    settled(shard)
    assert counted(shard) == {("retention", "c", "a/0"): 2, ("no_permission", "c", "b"): 2}


def test_what_it_asked_for_when_it_lost_something_counts_even_if_it_asks_for_less_now(shard: Shard) -> None:
    client = subscribed(shard, "c", "a", "b", options=1, **LASTING)
    reader = session_of(shard, "c").subscriber.main
    published(shard, 4, "a", "b")
    lost(shard, "c", 0, 4)
    client.say(wire.unsubscribe(2, ["a"]))
    settled(shard)
    assert reader is not None and counted(shard) == {("retention", "c", "a"): 2, ("retention", "c", "b"): 2}


def test_clients_who_lose_the_same_share_one_read_of_the_log(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "d", "e"):
        away(shard, name, "a/#")
    published(shard, 6, "a/0", "b")
    reads: list[int] = []
    reader = shard.parts.delivery.losses._reader
    fake = SimpleNamespace(read=lambda index, lsn, done: (reads.append(lsn), reader.read(index, lsn, done)))
    monkeypatch.setattr(shard.parts.delivery.losses, "_reader", fake)
    for name, first in (("c", 0), ("d", 2), ("e", 4)):
        lost(shard, name, first, 6)
    settled(shard)
    assert counted(shard) == {("retention", name, "a/0"): n for name, n in (("c", 3), ("d", 2), ("e", 1))}
    assert reads in ([], [0])


def test_a_client_that_is_here_is_told_of_as_a_gap_and_one_that_is_away_when_it_is_back(shard: Shard) -> None:
    subscribed(shard, "here", "a")
    away(shard, "away", "a")
    published(shard, 4, "a", "b")
    for name in ("here", "away"):
        lost(shard, name, 0, 4)
    settled(shard)
    gap = {
        "stream": "main", "generation": 1, "partition": 0, "first_lsn": 0, "next_lsn": 4, "records": 2,
        "why": "retention",
    }  # fmt: skip
    assert shard.told("log.gap") == [{"client_id": "here", **gap}]
    assert session_of(shard, "away").missed == (gap,)


def test_of_many_losses_the_newest_are_told_when_it_is_back(shard: Shard) -> None:
    away(shard, "c", "a")
    published(shard, MISSED_MAX + 8, "a")
    for first in range(MISSED_MAX + 8):
        lost(shard, "c", first, first + 1)
        settled(shard)
    missed = session_of(shard, "c").missed
    assert [each["first_lsn"] for each in missed] == list(range(8, MISSED_MAX + 8))


def test_a_range_without_anything_that_it_asked_for_is_no_loss(shard: Shard) -> None:
    away(shard, "c", "a")
    published(shard, 4, "b")
    lost(shard, "c", 0, 4)
    settled(shard)
    assert counted(shard) == {} and session_of(shard, "c").missed == ()


def test_what_is_still_to_come_is_counted_by_topic_behind_the_losses(shard: Shard) -> None:
    away(shard, "c", "a/#")
    published(shard, 7, "a/0", "a/1", "b")
    found: list[Counter[str]] = []
    lost(shard, "c", 0, 2)
    shard.parts.delivery.losses.pending(session_of(shard, "c").subscriber.readers(), found.append)
    settled(shard)
    assert found == [Counter({"a/0": 3, "a/1": 2})]
    assert counted(shard) == {("retention", "c", "a/0"): 1, ("retention", "c", "a/1"): 1}
    shard.parts.delivery.losses.pending([], found.append)
    assert found[1:] == [Counter()], "nobody has anything to come"


def test_a_removal_waits_until_what_is_lost_by_it_is_counted(shard: Shard) -> None:
    away(shard, "c", "a")
    published(shard, 3, "a")
    called: list[dict[Any, int]] = []
    lost(shard, "c", 0, 3)
    shard.parts.delivery.losses.count_removed(MAIN, 3, lambda: called.append(counted(shard)))
    assert called == []
    settled(shard)
    assert called == [{("retention", "c", "a"): 3}]
