"""Disk space: the oldest segments go before the disk is full, within what the journal, sessions and the export need.

With a whole shard and a disk that fills up: tests/faults/test_disk_space.py."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.disk.space import VolumeSpace
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.bus import messages as m
from rumq.shards.retention.disk_space import (
    COUNT_SECONDS,
    HEARD_SECONDS,
    SHARED_NEED_FROM,
    DiskSpace,
    SpaceSettings,
)
from rumq.shards.retention.segment_removal import SegmentRemover
from rumq.shards.retention.space_events import EPISODE_SECONDS
from tests.commitlog.records import DEAD, NOW, append, index, numbers, some_records, write
from tests.shards.bus.world import Hand

SEGMENT = 16_384  # bytes of a finished one of ours
LOG = 4 * SEGMENT + 12_288
TOTAL = 1 << 40
RESERVE = 1000
HOUR, DAY = 3600.0, 86_400.0


class World:
    """A partition of four finished segments, of 20 records and seconds each, and of one that is written to.

    needs: the lsn from which on the journal, sessions or the export need records; others: what other shards said"""

    def __init__(self, *, yields: bool = True, is_first: bool = True, percent: float = 50, wanted: float = 25) -> None:
        spec = StreamSpec("main", ("#",), segment_bytes_max=12_000, yields=yields)
        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([spec], lambda f, t: True),
            OpenOptions(NOW, random=numbers(0), hot_bytes_max=0, direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        self.partition = self.store.own[0]
        for first in range(0, 100, 10):
            append(self.partition, some_records(10, first), NOW + first * 1_000_000)
            write(self.partition)
        index(self.partition)
        assert self.partition.segments.bytes == LOG
        self.hand = Hand()
        self.needs: dict[str, int | None] = {"journal": None, "sessions": None, "export": None}
        self.needs_told = 0
        self.others: list[m.Trimmable] = []
        self.rolled: list[int] = []
        bounds: Any = SimpleNamespace(
            retained=lambda index: self.needs["journal"],
            sessions=lambda index: self.needs["sessions"],
            exporter=lambda partition: self.needs["export"],
            tell_needs=self._tell_needs,
        )
        self.remover = SegmentRemover(
            self.store, bounds, self.hand, self, self.hand, sessions_bytes_max=0, roll=self.rolled.append,
            before_removal=lambda index, lsn, then: then(),
        )  # fmt: skip
        self.latest: VolumeSpace | None = None
        self.free_bytes_min = RESERVE
        settings = SpaceSettings(percent, wanted, is_first)
        self.disk = DiskSpace(self.store, bounds, self, self, self.remover, self.hand, self.hand, settings)

    # Pool, peers

    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        done(job(), None)

    def trimmable(self) -> list[m.Trimmable]:
        return self.others

    def say_all(self, message: m.AnyMessage) -> None:
        self.hand.say_all(message)

    def _tell_needs(self) -> None:
        self.needs_told += 1

    # Time

    def measured(self, free_bytes: int, seconds: float = 1.0) -> None:
        self.hand.monotonic += seconds
        self.latest = VolumeSpace(free_bytes, TOTAL)
        self.disk.end_turn()

    @property
    def segments_gone(self) -> int:
        return self.partition.first_lsn // 20

    def told(self, *names: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.hand.events if name in names]


def test_before_the_first_measurement_nothing_is_known_and_nothing_goes() -> None:
    world = World()
    world.disk.end_turn()
    statistics = world.disk.statistics()
    assert (statistics.free_bytes, statistics.total_bytes, statistics.seconds_to_full) == (None, None, None)
    assert statistics.free_wanted == RESERVE and statistics.yields and world.segments_gone == 0


def test_a_measurement_is_looked_at_once() -> None:
    world = World()
    world.measured(LOG)
    assert world.latest is None and world.disk.space == VolumeSpace(LOG, TOTAL)
    statistics = world.disk.statistics()
    assert (statistics.free_bytes, statistics.total_bytes) == (LOG, TOTAL)
    assert statistics.free_wanted == LOG == world.disk.wanted, "half of the room of the log"


@pytest.mark.parametrize(
    ("free_bytes", "segments"),
    [(LOG, 0), (LOG - 2, 1), (LOG - 2 * SEGMENT, 1), (LOG - 2 * SEGMENT - 2, 2), (0, 3)],
)
def test_as_many_of_the_oldest_go_as_are_missing_from_the_part_that_stays_free(free_bytes: int, segments: int) -> None:
    """What goes makes room twice: of a disk that log and free space share, half stays free."""
    world = World()
    world.measured(free_bytes)
    assert world.segments_gone == segments
    assert (world.disk.told.segments, world.disk.told.records) == (segments, 20 * segments)
    assert world.disk.told.bytes == segments * SEGMENT and world.disk.statistics().removed_records == 20 * segments


def test_files_beside_the_log_do_not_take_the_room_below_which_publishers_are_refused() -> None:
    world = World()
    assert world.disk.has_room(1 << 40), "not measured yet"
    world.measured(RESERVE + 5000)
    assert world.disk.has_room(5000) and not world.disk.has_room(5001)


def test_a_stream_that_does_not_yield_keeps_everything() -> None:
    world = World(yields=False)
    world.measured(0)
    assert world.segments_gone == 0 and not world.disk.yields and world.hand.events == []
    assert world.disk.statistics().free_wanted == RESERVE, "below it publishers are refused"


def test_what_goes_for_another_reason_is_not_counted_as_gone_for_want_of_space() -> None:
    world = World()
    removal = world.partition.take_oldest(1)
    assert removal is not None
    world.remover.carry_out(world.partition, removal, "retention")
    assert world.segments_gone == 1 and world.disk.statistics().removed_records == 0


def test_while_segments_are_being_removed_no_more_are_chosen() -> None:
    world = World()
    world.partition.segments.removing = True
    world.measured(0)
    world.partition.segments.removing = False
    assert world.segments_gone == 0
    world.measured(0)
    assert world.segments_gone == 3


# What is needed


def test_what_the_journal_needs_stays_however_full_the_disk_is() -> None:
    world = World()
    world.needs["journal"] = 20
    world.measured(0)
    assert world.segments_gone == 1


@pytest.mark.parametrize("who", ["sessions", "export"])
def test_what_somebody_has_not_had_goes_last_and_only_below_a_lower_bound(who: str) -> None:
    world = World()
    world.needs[who] = 20
    world.measured(20_000)  # a quarter of the room of the log is 24 456 bytes: one segment is enough for that
    assert world.segments_gone == 1
    (low,) = world.told("disk.low")
    assert "lasting sessions" not in low["why"]
    world.measured(0)
    assert world.segments_gone == 2, "as much as is missing from the lower bound"
    _, low = world.told("disk.low")
    assert "lasting sessions or the export" in low["why"]


def test_when_only_what_is_written_to_is_left_it_is_ended_so_that_it_can_go() -> None:
    world = World(percent=100, wanted=100)
    world.measured(0)
    assert (world.segments_gone, world.rolled) == (4, [0])


def test_a_segment_that_is_written_to_is_not_ended_if_a_session_needs_it() -> None:
    world = World(percent=100, wanted=0)
    world.free_bytes_min = 0
    world.needs["sessions"] = 80
    world.measured(0)
    assert (world.segments_gone, world.rolled) == (4, [])
    world.needs["sessions"] = 81
    world.measured(0)
    assert world.rolled == [0]


def test_a_segment_with_little_in_it_is_not_ended_early() -> None:
    world = World(percent=100, wanted=100)
    world.partition.spec = replace(world.partition.spec, segment_bytes_max=8 * 12_288 + 8)
    world.measured(0)
    assert (world.segments_gone, world.rolled) == (4, [])


# Other shards


def other(*oldest: int, log_bytes: int = LOG) -> m.Trimmable:
    """oldest: seconds of the first record of each of its segments that may go"""
    return m.Trimmable(log_bytes, [(NOW + seconds * 1_000_000, SEGMENT) for seconds in oldest])


def test_the_log_is_that_of_all_shards_and_each_says_what_may_go_of_its_own() -> None:
    world = World()
    world.others = [other(), other(log_bytes=5)]
    world.measured(TOTAL)
    assert world.disk.log_bytes == LOG + LOG + 5
    ((to, said),) = world.hand.said
    assert to == -1 and isinstance(said, m.Trimmable) and said.log_bytes == LOG
    assert said.oldest == [(NOW + first * 1_000_000, SEGMENT) for first in (0, 20, 40, 60)]


def test_segments_are_added_up_now_and_then_and_at_each_look_when_it_is_tight() -> None:
    world = World()
    world.others = [other()]
    for _ in range(10):
        world.measured(TOTAL, COUNT_SECONDS / 10)
    assert len(world.hand.said) == 1 and world.needs_told == 0
    tight = int(2 * LOG * SHARED_NEED_FROM)
    world.measured(tight, COUNT_SECONDS)
    said = len(world.hand.said)
    world.measured(tight, 0.1)
    assert len(world.hand.said) == said + 1
    assert world.needs_told == 1, "and the others hear what sessions here need, before anything goes"


def test_older_segments_of_other_shards_go_first_by_the_same_rule() -> None:
    world = World()
    world.others = [other(-20, -10, log_bytes=0)]
    world.measured(LOG - 4 * SEGMENT, 0.0)
    assert world.segments_gone == 0, "the others have not said yet what their sessions need"
    world.measured(LOG - 4 * SEGMENT, HEARD_SECONDS)
    assert world.segments_gone == 0, "two segments are missing, and those are theirs"
    world.measured(LOG - 6 * SEGMENT)
    assert world.segments_gone == 1, "the third is ours"


def test_nobody_waits_for_other_shards_when_it_presses() -> None:
    world = World()
    world.others = [other(log_bytes=0)]
    world.measured(0, 0.0)
    assert world.segments_gone == 3


# Events


def test_the_operator_hears_once_that_segments_go_and_a_day_later_that_it_is_over() -> None:
    world = World()
    world.measured(LOG - 2)
    (low,) = world.told("disk.low")
    assert low == {
        "free_bytes": LOG - 2, "free_wanted": LOG - 1, "log_bytes": LOG,
        "why": "the oldest segments of all streams go",
    }  # fmt: skip
    world.measured(LOG - 3 * SEGMENT, HOUR)
    assert world.segments_gone == 2 and len(world.told("disk.low")) == 1
    world.measured(LOG, EPISODE_SECONDS)
    assert world.told("disk.eased") == []
    world.measured(LOG, 1.0)
    assert world.told("disk.eased") == [{"free_bytes": LOG, "segments": 2, "records": 40, "bytes": 2 * SEGMENT}]
    world.measured(0)
    assert len(world.told("disk.low")) == 2


RATE = 1000  # bytes a second


def filling(world: World, left_seconds: float, *, for_seconds: int = 7200) -> float:
    """So long at RATE, until so many seconds are left; returns the forecast."""
    for to_come in range(for_seconds, -1, -10):
        world.measured(RESERVE + int(RATE * (left_seconds + to_come)), 10.0)
    return world.disk.seconds_to_full() or 0.0


def test_when_the_disk_is_full_is_told_a_day_and_an_hour_before() -> None:
    world = World(yields=False)
    before = 1.5 * DAY
    assert filling(world, before) == pytest.approx(before)
    assert world.told("disk.filling") == []
    for seconds in (0.9 * DAY, 0.8 * DAY, 0.9 * HOUR, 0.5 * HOUR):
        world.measured(RESERVE + int(RATE * seconds), before - seconds)
        before = seconds
    day, hour = world.told("disk.filling")
    assert (day["seconds"], hour["seconds"]) == (0.9 * DAY, 0.9 * HOUR)
    assert day["bytes_per_second"] == RATE and day["then"] == "publishers are refused"


def test_one_that_is_nearly_full_at_the_start_is_told_of_once() -> None:
    world = World(yields=False)
    filling(world, 0.5 * HOUR, for_seconds=80)
    assert len(world.told("disk.filling")) == 1


def test_it_is_told_again_only_after_it_looked_much_better() -> None:
    world = World(yields=False)
    filling(world, 0.9 * DAY)
    for days, told in ((1.5, 1), (3.0, 2)):
        world.measured(RESERVE + int(RATE * days * DAY), 1.0)  # somebody made room
        world.measured(RESERVE + int(RATE * 0.9 * DAY), (days - 0.9) * DAY)
        assert len(world.told("disk.filling")) == told


def test_one_shard_tells_for_all() -> None:
    world = World(yields=False, is_first=False)
    assert filling(world, 0.5 * HOUR) > 0 and world.told("disk.filling") == []


def test_a_log_that_yields_counts_to_where_its_segments_go() -> None:
    world = World(percent=50)
    filling(world, 0.5 * HOUR)
    assert world.disk.seconds_to_full() == pytest.approx(
        (world.disk.statistics().free_bytes - world.disk.wanted) / RATE  # type: ignore[operator]
    )
    assert world.told("disk.filling")[0]["then"] == "the oldest segments go"
