"""A repetition is the same bytes with another correlation id, at partitions that stand where they stood."""

from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.parked.empty_fetch import BYTES_MAX, SECONDS_MIN, EmptyFetches

FRAME = b"\0\1\0\13" + b"\0\0\0\1" + b"topic and offset"
ANSWER = [b"\0\0\0\16", b"\0\0\0\1" + b"nothing", b"yet"]


class View(NamedTuple):
    first_lsn: int = 3
    end_lsn: int = 5
    name: str = "main/g1/p0"


def partition() -> LogPartition:
    return LogPartition(cast(Any, View()))


def request(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def fetches(found: LogPartition, seconds: float = SECONDS_MIN) -> EmptyFetches:
    made = EmptyFetches()
    assert made.add(FRAME, ANSWER, seconds, [found])
    return made


@given(st.binary(min_size=4, max_size=4))
def test_the_answer_has_the_correlation_id_of_the_repetition(number: bytes) -> None:
    again = request(FRAME[:4] + number + FRAME[8:])
    found = fetches(partition()).maybe_repeated_by(again)
    assert found is not None and found.answer_to(again) == b"\0\0\0\16" + number + b"nothingyet"


@given(st.integers(0, len(FRAME) + 3), st.integers(1, 255))
def test_a_request_that_differs_in_a_byte_is_another_one(at: int, by: int) -> None:
    other = bytearray(request(FRAME))
    other[at] ^= by
    assert (fetches(partition()).maybe_repeated_by(bytes(other)) is None) == (not 8 <= at < 12)


@pytest.mark.parametrize("data", [b"", b"\0" * 12, request(FRAME)[:-1], request(FRAME) * 2, request(FRAME) + b"\0"])
def test_what_is_not_one_whole_request_is_no_repetition(data: bytes) -> None:
    assert fetches(partition()).maybe_repeated_by(data) is None


@pytest.mark.parametrize("view", [View(first_lsn=4), View(end_lsn=6)])
def test_where_a_partition_has_moved_nothing_is_repeated(view: View) -> None:
    moved = partition()
    made = fetches(moved)
    moved.take(cast(Any, view))
    assert made.maybe_repeated_by(request(FRAME)) is None
    other = partition()
    assert made.add(FRAME + b"other", ANSWER, 1.0, [other]) and made.partitions == {other}


def test_short_waits_and_long_requests_are_not_kept() -> None:
    made = EmptyFetches()
    assert not made.add(FRAME, ANSWER, SECONDS_MIN / 2, [])
    assert not made.add(FRAME + bytes(BYTES_MAX), ANSWER, 1.0, []) and not made.add(FRAME, [bytes(BYTES_MAX)], 1.0, [])
    assert made.maybe_repeated_by(request(FRAME)) is None


def test_what_a_connection_knows_has_a_bound() -> None:
    made = EmptyFetches()
    for n in range(100):
        assert made.add(FRAME + b"%d" % n, ANSWER, 1.0, [partition()])
        assert made.size <= BYTES_MAX
    assert made.size > BYTES_MAX // 4


def test_partitions_count_as_bytes() -> None:
    """Else a fetch of hundreds of them, with short names, would take several times what a connection may keep."""
    made = EmptyFetches()
    assert made.add(FRAME, ANSWER, 1.0, [partition() for _ in range(100)])
    assert made.size > 100 * 100
    assert not made.add(FRAME + b"more", ANSWER, 1.0, [partition() for _ in range(200)])
