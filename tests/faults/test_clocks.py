"""Clocks that jump, stop, or come up in 1970: records keep their order and their stamps never run backwards, and none
that is inside its retention goes. docs/reference/log-format.md, "Retention and clocks"."""

from collections.abc import Iterator

import pytest

from commitlog.disk.clock_guard import STABLE_SECONDS, ClockGuard, Jump, age_us, behind, remembered
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW, Seen, everything
from tests.conformance import wire
from tests.faults.shard import Client, Shard

SECOND = 1_000_000
HOUR, DAY = 3600, 86_400
YEARS_10 = 3653 * DAY
KEPT_SECONDS = 6 * HOUR


class Machine:
    """A shard with records of 6 hours, on a machine whose real time is known here alone.

    real: seconds since the first start; wall: what its clock shows, µs since 1970"""

    def __init__(self) -> None:
        self.real, self.starts, self.published = 0.0, 0, 0
        self.wall = NOW
        self.is_frozen = False
        self.files = SimulatedFiles()
        self.when: list[float] = []  # each record's real time
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.shard = Shard(
            self.files, seed=10_000 * self.starts, now_us=self.wall, segment_bytes_max=70_000,
            segment_seconds_max=HOUR // 2, retention_seconds_max=KEPT_SECONDS,
        )  # fmt: skip
        self.client = Client(self.shard, "p", 5)

    def restart(self) -> None:
        self.shard.end()
        self.files = self.files.after_kill()
        self.start()

    def live(self, seconds: float, step: float = 600.0) -> None:
        """Publish every ten minutes of real time, and look whether anything went that should not have."""
        until = self.real + seconds
        while self.real < until:
            self.real += step
            self.client.say(wire.publish("t", b"%d" % self.published))
            self.when.append(self.real)
            self.published += 1
            if not self.is_frozen:
                self.wall += round(step * SECOND)
            self.shard.now_us = self.wall
            self.shard.monotonic += step
            self.client.link.heard_at = self.shard.monotonic
            self.shard.settle()
            self.client.take()
            self.check()

    def jump(self, seconds: float) -> None:
        self.wall += round(seconds * SECOND)

    def found(self) -> list[Seen]:
        found, gaps = everything(self.shard.store.partitions[1])
        assert gaps == []
        return found

    def check(self) -> None:
        found = self.found()
        assert [seen.lsn for seen in found] == list(range(found[0].lsn, self.published))
        assert [int(seen.payload) for seen in found] == [seen.lsn for seen in found]
        stamps = [seen.ts for seen in found]
        assert stamps == sorted(stamps), "stamps never run backwards"
        inside = [n for n, when in enumerate(self.when) if self.real - when < KEPT_SECONDS]
        assert found[0].lsn <= inside[0], f"at {self.real}: a record inside its retention is gone"

    def told(self, *names: str) -> int:
        return len(self.shard.told(*names))


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    made.live(8 * HOUR)
    assert made.found()[0].lsn > 0, "retention goes on while the clock is good"
    yield made
    made.shard.end()


@pytest.mark.parametrize("seconds", [-HOUR, YEARS_10, -DAY, DAY, 61])
def test_a_clock_that_jumps_takes_no_record(machine: Machine, seconds: int) -> None:
    machine.jump(seconds)
    machine.live(3 * HOUR)
    assert machine.told("clock.jumped") == 1 == machine.told("retention.held")
    assert machine.told("retention.resumed") == 1, "it is steady again"
    machine.restart()
    machine.live(3 * HOUR)
    first = machine.found()[0].lsn
    machine.live(8 * HOUR)
    assert machine.found()[0].lsn > first or seconds < -HOUR, "and retention goes on"


def test_a_jump_that_is_taken_back_takes_no_record(machine: Machine) -> None:
    machine.jump(YEARS_10)
    machine.live(2 * HOUR)
    machine.jump(-YEARS_10)
    machine.live(2 * HOUR)
    machine.restart()
    machine.live(4 * HOUR)


def test_a_clock_that_stands_still_takes_no_record(machine: Machine) -> None:
    machine.is_frozen = True
    machine.live(3 * HOUR)
    machine.is_frozen = False
    machine.jump(3 * HOUR)
    machine.live(3 * HOUR)


@pytest.mark.parametrize("corrected", [True, False])
def test_a_machine_that_comes_up_in_1970_takes_no_record(machine: Machine, corrected: bool) -> None:
    wall, machine.wall = machine.wall, 5 * SECOND
    machine.restart()
    machine.live(HOUR)
    assert machine.told("retention.held") == 1
    if corrected:
        machine.wall += wall
    machine.live(9 * HOUR)


def test_what_came_while_the_clock_was_behind_is_not_taken_for_old_after_a_restart(machine: Machine) -> None:
    """Its stamps stand at the newest from before."""
    machine.live(600)
    wall, machine.wall = machine.wall, 5 * SECOND
    machine.restart()
    machine.live(5 * HOUR)
    machine.wall += wall
    machine.restart()
    machine.live(8 * HOUR)
    assert machine.found()[0].lsn > 50, "and later it goes"


def test_a_new_log_that_begins_in_1970_keeps_its_records_when_the_clock_is_set(machine: Machine) -> None:
    machine.shard.end()
    fresh = Machine.__new__(Machine)
    fresh.__dict__.update(machine.__dict__, files=SimulatedFiles(), when=[], published=0, wall=5 * SECOND)
    fresh.start()
    fresh.live(2 * HOUR)
    fresh.wall = NOW
    fresh.live(4 * HOUR)
    fresh.restart()
    fresh.live(4 * HOUR)


def test_a_start_ten_years_ahead_takes_nothing_until_somebody_has_looked(machine: Machine) -> None:
    machine.jump(YEARS_10)
    machine.restart()
    machine.live(5 * HOUR)
    assert "if it is right, restart the broker" in machine.shard.told("retention.held")[0]["why"]
    machine.jump(-YEARS_10)
    machine.live(5 * HOUR)


def test_after_a_week_away_the_clock_is_believed_after_ten_minutes() -> None:
    governor = ClockGuard(NOW, NOW + 7 * DAY * SECOND, 0.0)
    assert governor.held
    for at in range(0, int(STABLE_SECONDS), 10):
        assert governor.look(NOW + (7 * DAY + at) * SECOND, float(at)) is None
        assert governor.held
    governor.look(NOW + (7 * DAY * SECOND) + round(STABLE_SECONDS) * SECOND, STABLE_SECONDS)
    assert not governor.held


def test_a_clock_that_is_steered_has_not_jumped() -> None:
    """Half a second an hour, for a year."""
    governor = ClockGuard(0, NOW, 0.0)
    for hour in range(366 * 24):
        assert governor.look(NOW + hour * HOUR * SECOND + hour * SECOND // 2, hour * 3600.0) is None
    assert not governor.held


@pytest.mark.parametrize(
    ("stamp", "jumps", "age"),
    [
        (100, [], 900),
        (100, [Jump(200, 700)], 400),
        (800, [Jump(200, 700)], 200),
        (100, [Jump(200, 300), Jump(400, 500)], 700),
    ],
)
def test_an_age_leaves_out_what_the_clock_jumped(stamp: int, jumps: list[Jump], age: int) -> None:
    assert age_us(stamp, 1000, jumps) == age


AHEAD, BACK = Jump(1000, 1000 + DAY * SECOND), Jump(1000 + DAY * SECOND, 1000)


@pytest.mark.parametrize(
    ("jumps", "jump", "newest", "now", "kept"),
    [
        ([], None, 10, 20, []),
        ([], AHEAD, 900, AHEAD.after_us, [AHEAD]),
        ([AHEAD], BACK, 900, 1000, []),  # taken back
        ([AHEAD], Jump(BACK.before_us, 500), 900, 500, []),  # and a little more
        ([AHEAD], Jump(BACK.before_us, 2000), 900, 2000, [Jump(1000, 2000)]),  # and a little less
        ([AHEAD], Jump(2**50, 5), 900, 2000, [AHEAD]),  # another one
        ([], BACK, BACK.before_us, 1000, [behind(BACK.before_us)]),
        ([behind(900)], Jump(5, 5000), 900, 5000, [Jump(900, 5000)]),
        ([behind(9000)], Jump(5, 5000), 9000, 5000, [behind(9000)]),  # still behind, by little
    ],
)
def test_what_is_remembered_of_the_clock(
    jumps: list[Jump], jump: Jump | None, newest: int, now: int, kept: list[Jump]
) -> None:
    assert remembered(jumps, jump, newest, now) == kept
