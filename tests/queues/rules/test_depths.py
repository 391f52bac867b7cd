"""Depths from marks in the log and from places of groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rumq.queues.rules.depths import MARKS_MAX, Depth, Depths, Place, SeenRecords, TopicMarks


@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(0, 900))
def test_the_estimate_errs_upwards_by_less_than_a_chunk(counts: list[int], at: int) -> None:
    """counts: records of each chunk, all of one topic, so that an lsn is a number"""
    marks, base = TopicMarks("p"), 0
    for count in counts:
        marks.add(SeenRecords("$queues/q/t", "p", base, base, base, base + count, 10 * count))
        base += count
    lsn = min(at, base - 1)
    left = base - lsn
    estimate = marks.since(lsn, 0).records
    assert left <= estimate < left + max(counts)
    assert marks.since(lsn, 0).size == 10 * estimate


@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(0, 900), st.integers(1, 100))
def test_a_range_has_at_most_what_is_estimated(counts: list[int], at: int, width: int) -> None:
    marks, base = TopicMarks("p"), 0
    for count in counts:
        marks.add(
            SeenRecords("$queues/q/t", "p", 2 * base, base, base, base + count, count)
        )  # every second record is its own
        base += count
    stop = min(at + width, 2 * base)
    actual = sum(at <= 2 * number < stop for number in range(base))
    estimate = marks.between(at, stop, 0)
    assert (actual <= estimate.records <= width) or not actual
    assert estimate.size <= estimate.records or estimate.records == 0


def test_marks_are_bounded_and_the_last_is_kept() -> None:
    marks = TopicMarks("p")
    for number in range(10_000):
        marks.add(SeenRecords("$queues/q/t", "p", number, number, number, number + 1, 1))
    assert len(marks) <= MARKS_MAX
    assert marks.since(9_999, 0).records == 1
    assert marks.since(0, 0).records == 10_000


def test_a_queue_is_as_deep_as_where_the_group_of_a_channel_stands() -> None:
    depths = Depths()
    depths.see(
        [
            SeenRecords("$queues/q/a", "p0", 0, 1000, 0, 10, 100), SeenRecords("$queues/q/b", "p1", 0, 1000, 0, 5, 50),
            SeenRecords("$queues/q/a", "p0", 10, 2000, 10, 14, 40),
            SeenRecords("$queues/other/a", "p0", 14, 2000, 0, 99, 1),
        ],
        {"p0": 113, "p1": 5},
    )  # fmt: skip
    assert depths.of_channel("c", "q", None, 0) == Depth()  # it has handed out everything
    depths.put_places({"c": Place({"p0": 10}), "d": Place({"p0": 0, "p1": 0}, [("p1", 0, 3)])})
    assert depths.of_channel("c", "q", None, 0) == Depth(4, 40, 2000)
    assert depths.of_channel("c", "q", "b", 0) == Depth()
    depths.put_places({"c": Place({"p0": 113}), "d": Place({"p0": 0, "p1": 0}, [("p1", 0, 3)])})
    assert depths.of_channel("c", "q", None, 0) == Depth()  # it is further than the log was seen
    assert depths.of_channel("d", "q", None, 0).records == 10 + 4 + 5 + 3
    assert depths.of_channel("d", "q", "b", 0) == Depth(5 + 3, 50 + 30, 1000)
    assert depths.of_channel("d", "q", None, 1500).records == 14  # by a chunk too many
    assert depths.of_queue("q", 0) == Depth(19, 190, 1000)
    assert depths.of_queue("q", 2001) == Depth()
    assert depths.topics("q") == {"a": 14, "b": 5}
    depths.forget("q")
    assert depths.of_queue("q", 0) == Depth()
