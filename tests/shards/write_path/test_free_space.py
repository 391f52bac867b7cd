"""Free space is measured on a thread once a second, and earlier when much was written; nobody waits for it."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.write_path.free_space import MEASURE_SECONDS, FreeSpaceProbe
from rumq.shards.write_path.write_lane import Submitted
from tests.commitlog.records import opened
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand

RESERVE = 400


class World:
    """heard: what admission was told, free bytes or a fault"""

    def __init__(self, free_bytes_min: int = RESERVE) -> None:
        self.files = SimulatedFiles()
        self.store = opened(self.files)
        self.hand, self.pool = Hand(), ByHand()
        self.heard: list[object] = []
        self.written = Submitted()
        admission: Any = SimpleNamespace(
            free_bytes_min=free_bytes_min, free=self.heard.append, unreachable=self.heard.append
        )
        self.probe = FreeSpaceProbe(self.store, self.pool, admission, self.hand, self.written)

    def measured(self, written_bytes: int = 0) -> bool:
        """Whether a turn that ends now begins a measurement, which ends at once."""
        self.written.bytes = written_bytes
        self.probe.end_turn()
        if not self.pool.jobs:
            return False
        self.pool.work()
        return True


def test_admission_hears_how_much_is_free_and_the_measurement_stays_for_whoever_reads_it() -> None:
    world = World()
    assert world.probe.latest is None and world.probe.free_bytes_min == RESERVE
    assert world.measured()
    assert world.probe.latest == world.store.space()
    assert world.heard == [world.store.space().free_bytes]


def test_it_is_measured_once_a_second() -> None:
    world = World()
    assert world.measured() and not world.measured()
    world.hand.monotonic += MEASURE_SECONDS / 2
    assert not world.measured()
    world.hand.monotonic += MEASURE_SECONDS / 2
    assert world.measured() and len(world.heard) == 2


@pytest.mark.parametrize(("written_bytes", "is_measured"), [(RESERVE // 4, False), (RESERVE // 4 + 1, True)])
def test_and_at_once_when_a_quarter_of_the_reserve_may_have_been_written_since(
    written_bytes: int, is_measured: bool
) -> None:
    world = World()
    world.measured(1000)
    assert world.measured(1000 + written_bytes) is is_measured
    assert not world.measured(1000 + written_bytes), "counted from the last measurement"


def test_without_a_reserve_it_does_not_matter_how_much_is_written() -> None:
    world = World(free_bytes_min=0)
    assert world.measured() and not world.measured(1 << 40)


def test_there_is_one_measurement_at_a_time_however_slow_the_disk_is() -> None:
    world = World()
    for _ in range(10):
        world.probe.end_turn()
        world.hand.monotonic += 10 * MEASURE_SECONDS
    assert len(world.pool.jobs) == 1
    world.pool.work()
    assert world.measured()


def test_a_data_directory_that_cannot_be_reached_is_told_to_admission_and_is_no_measurement() -> None:
    world = World()
    world.files.rename("data", "elsewhere")
    assert world.measured()
    (fault,) = world.heard
    assert isinstance(fault, FileNotFoundError) and world.probe.latest is None
    world.files.rename("elsewhere", "data")
    world.hand.monotonic += MEASURE_SECONDS
    assert world.measured() and world.heard[1:] == [world.store.space().free_bytes]


def test_a_fault_of_ours_is_not_taken_for_a_disk_that_fails() -> None:
    world = World()
    world.probe.end_turn()
    _, done = world.pool.jobs.popleft()
    with pytest.raises(ZeroDivisionError):
        done(None, ZeroDivisionError())
    assert world.heard == []
