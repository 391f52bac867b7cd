"""What bulk senders are allowed: a group takes at most twice what this disk must have, and 0.25 ms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.shards.write_path.bulk_allowance import (
    ALLOWED_MAX,
    ALLOWED_MIN,
    REST_SECONDS_MAX,
    SHARED_MIN,
    BulkAllowance,
)

MIB = 1 << 20


def settled(allowance: BulkAllowance, sync_seconds: float, bytes_per_second: float, groups: int = 400) -> float:
    """Groups of what is allowed, and some that came alone, on such a disk. returns: seconds of the last one"""
    seconds = 0.0
    for _ in range(groups):
        allowance.note(100, sync_seconds, 0.0)
        seconds = sync_seconds + allowance.bytes / bytes_per_second
        allowance.note(allowance.bytes, seconds, 0.0)
    return seconds


def test_before_anything_was_written_it_is_the_most() -> None:
    assert BulkAllowance().bytes == ALLOWED_MAX


@pytest.mark.parametrize(
    ("sync_ms", "mib_per_second", "least", "most"),
    [
        (0.02, 1000, 0.2 * MIB, 0.35 * MIB),  # no sync, or a fast one: others wait for 0.3 ms
        (0.2, 1000, 0.4 * MIB, 0.5 * MIB),
        (5, 300, 1.5 * MIB, 1.7 * MIB),  # a slow sync: large groups cost little more
        (20, 300, ALLOWED_MAX, ALLOWED_MAX),
        (0.02, 50, ALLOWED_MIN, ALLOWED_MIN + 3),  # slow without a sync
    ],
)
def test_it_is_what_the_disk_writes_in_the_time_that_a_group_may_take(
    sync_ms: float, mib_per_second: float, least: float, most: float
) -> None:
    allowance = BulkAllowance()
    seconds = settled(allowance, sync_ms / 1000, mib_per_second * MIB)
    assert least <= allowance.bytes <= most
    if ALLOWED_MIN + 3 < allowance.bytes < ALLOWED_MAX:
        assert seconds == pytest.approx(2 * sync_ms / 1000 + 0.00025, rel=0.05)


def test_it_follows_a_disk_that_becomes_slower_and_faster() -> None:
    allowance = BulkAllowance()
    settled(allowance, 0.00002, 1000 * MIB)
    fast = allowance.bytes
    settled(allowance, 0.005, 300 * MIB, groups=1000)
    assert allowance.bytes > MIB
    settled(allowance, 0.00002, 1000 * MIB)
    assert allowance.bytes == pytest.approx(fast, rel=0.1)


def test_small_groups_alone_change_nothing() -> None:
    allowance = BulkAllowance()
    for _ in range(1000):
        allowance.note(4096, 0.01, 7.0)
    assert allowance.bytes == allowance.shared_bytes == ALLOWED_MAX
    assert allowance.rests_until == 0.0, "who sends little does not have bulk senders rest"


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.floats(0, 1e6))))
def test_whatever_is_told_it_stays_within_its_bounds(groups: list[tuple[int, float]]) -> None:
    allowance = BulkAllowance()
    for size, seconds in groups:
        allowance.note(size, seconds, 100.0)
        assert ALLOWED_MIN <= allowance.bytes <= ALLOWED_MAX
        assert SHARED_MIN <= allowance.shared_bytes <= allowance.bytes
        assert allowance.rests_until <= 100.0 + REST_SECONDS_MAX


def test_bulk_senders_rest_for_as_long_as_the_disk_was_busy_for_them() -> None:
    allowance = BulkAllowance()
    allowance.note(MIB, 0.003, 100.0)
    assert allowance.rests_until == pytest.approx(100.003)
    allowance.note(MIB, 30.0, 200.0)
    assert allowance.rests_until == 200.0 + REST_SECONDS_MAX, "a disk that stood still does not count for long"


def test_beside_who_sends_a_little_a_group_may_be_smaller() -> None:
    allowance = BulkAllowance()
    settled(allowance, 0.00002, 200 * MIB)
    assert allowance.bytes == pytest.approx(ALLOWED_MIN, abs=4)
    assert allowance.shared_bytes == pytest.approx(SHARED_MIN, abs=4)
