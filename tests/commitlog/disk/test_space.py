"""What stays free, what goes first, and when the disk will be full: the rules alone, on numbers."""

import pytest

from commitlog.disk.space import (
    FillRate,
    Sealed,
    VolumeSpace,
    free_wanted,
    missing,
    oldest_first,
    reserve_bytes,
    segment_bytes,
)

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("free", "log", "wanted"),
    [
        (85 * GIB, 15 * GIB, 15 * GIB),  # the disk is the log's
        (1 * GIB, 1 * GIB, int(0.3 * GIB)),  # others fill it: a share of what is left to the log
        (100 * MIB, 0, 96 * MIB),  # and always more than below which publishers are refused
    ],
)
def test_a_share_of_the_logs_room_is_to_be_free(free: int, log: int, wanted: int) -> None:
    assert abs(free_wanted(VolumeSpace(free, 100 * GIB), log, 15.0, 64 * MIB) - wanted) <= 1


def test_what_others_fill_costs_no_more_of_the_log_than_to_its_least() -> None:
    space = VolumeSpace(0, 100 * GIB)
    assert missing(space, 10 * GIB, 15 * GIB, 64 * MIB) == 10 * GIB - 64 * MIB
    assert missing(space, 50 * MIB, 15 * GIB, 64 * MIB) == 0
    assert missing(VolumeSpace(16 * GIB, 100 * GIB), 10 * GIB, 15 * GIB, 64 * MIB) == 0


def test_a_small_disk_has_a_smaller_reserve_and_smaller_segments() -> None:
    assert reserve_bytes(64 * MIB, 100 * GIB) == 64 * MIB
    assert reserve_bytes(64 * MIB, 48 * MIB) == 3 * MIB
    assert segment_bytes(64 * MIB, 100 * GIB) == 64 * MIB
    assert segment_bytes(64 * MIB, 64 * MIB) == MIB
    assert segment_bytes(64 * MIB, MIB) == 65_536


def test_the_oldest_of_all_partitions_go_first() -> None:
    one = [Sealed(1, 10), Sealed(4, 10), Sealed(5, 10)]
    two = [Sealed(2, 10), Sealed(3, 10)]
    assert oldest_first([one, two], [], 30) == [1, 2]
    assert oldest_first([one, two], [], 31) == [2, 2]
    assert oldest_first([one, two], [], 0) == [0, 0]
    assert oldest_first([one, two], [], 1000) == [3, 2]


def test_shards_that_know_of_each_other_let_go_of_no_more_than_one_would() -> None:
    one, two = [Sealed(1, 10), Sealed(4, 10)], [Sealed(2, 10), Sealed(3, 10)]
    assert oldest_first([one], two, 20) == [1]
    assert oldest_first([two], one, 20) == [1]


def test_the_rate_is_what_was_written_whatever_was_let_go_or_others_removed() -> None:
    rate = FillRate()
    free = 10_000_000
    for second in range(120):
        let_go = 50_000 if second % 50 == 49 else 0
        rate.take(free, let_go, float(second))
        free += -1000 + (50_000 if second % 50 == 48 else 0)
    assert rate.bytes_per_second == pytest.approx(1000, rel=0.05)
    assert rate.seconds_to(100_000) == pytest.approx(100, rel=0.05)
    rate.take(free + 10**9, 0, 121.0)
    assert rate.bytes_per_second <= 1000 * 1.05, "room that somebody made is no growth"


def test_nothing_is_foretold_of_a_minute() -> None:
    rate = FillRate()
    for second in range(30):
        rate.take(10**9 - second * 10**7, 0, float(second))
    assert rate.seconds_to(1) is None


def test_a_quiet_disk_is_never_full() -> None:
    rate = FillRate()
    for second in range(120):
        rate.take(10**9, 0, float(second))
    assert rate.seconds_to(10**9) is None
