"""R10, on a node that does not lead: whose disk is full, slow or fails, it lets others lead."""

from pathlib import Path

from commitlog.testing.memory_state import MemoryState
from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.node.copy_disk import REMEMBERED_SECONDS, CopyDisk
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.standby.disk_fitness import UNWELL_PATIENCE_SECONDS
from rumq.cluster.replication.standby.standby_core import StandbyCore

NOTHING = memoryview(b"")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_full_disk_is_not_well_until_there_is_room_and_some(tmp_path: Path) -> None:
    clock, free = Clock(), [2000]
    disk = CopyDisk(str(tmp_path), 1000, clock, lambda directory: free[0])
    assert disk.is_well() and disk.can_lead()
    free[0], clock.now = 1100, 2.0
    assert not disk.is_well(), "a leader gives up at 1000: it would do so at once"
    free[0], clock.now = 1250, 4.0
    assert disk.is_well()


def test_slow_syncs_in_a_row_count_for_a_while(tmp_path: Path) -> None:
    clock = Clock()
    disk = CopyDisk(str(tmp_path), 0, clock)
    disk.took(1.9)
    assert disk.is_well()
    disk.took(2.0)
    assert disk.is_well(), "one may be a pause of the whole process"
    disk.took(0.01)
    disk.took(2.0)
    assert disk.is_well()
    disk.took(2.0)
    assert not disk.is_well()
    clock.now = REMEMBERED_SECONDS
    assert disk.is_well()
    disk.took(2.0)
    assert not disk.is_well()
    disk.took(0.01)
    assert disk.is_well(), "it is quick again"


def test_a_disk_that_takes_no_probe_does_not_lead(tmp_path: Path) -> None:
    disk = CopyDisk(str(tmp_path / "gone"), 0, Clock(), lambda directory: 1 << 40)
    assert disk.is_well() and not disk.can_lead()


class Logs:
    def ends(self) -> dict[str, int]:
        return {"main/g1/p0": 0}

    def marks(self) -> dict[str, int]:
        return {}

    def holdings(self) -> dict[str, tuple[int, str]]:
        return {}

    def sync(self) -> list[tuple[str, int, str, int]]:
        return []


def standby(*, is_well: bool) -> StandbyCore:
    core = StandbyCore(
        "n1", Logs(), MemoryState(), patience=lambda: 0.5, unique=lambda: "x", now=0.0,  # type: ignore[arg-type]
        is_well=lambda: is_well, can_lead=lambda: is_well,
    )  # fmt: skip
    record = ShardRecord(epoch=1, leader="n2", claim="", replicas=["n1", "n2", "n3"])
    core.seen(Versioned(record, 1), True, 0.0)
    return core


def polls_at(core: StandbyCore, until: float) -> float | None:
    """When it first asks whether there is a leader."""
    for tick in range(int(until * 10)):
        core.tick(tick / 10)
        if any(isinstance(e, fx.Send) and isinstance(e.message, m.Poll) for e in core.take_effects()):
            return tick / 10
    return None


def test_who_is_not_well_waits_longer_and_claims_only_when_nobody_else_does() -> None:
    assert polls_at(standby(is_well=True), 10) == 0.5
    late = polls_at(standby(is_well=False), 10)
    assert late is not None and late >= 0.5 + UNWELL_PATIENCE_SECONDS


def test_who_is_not_well_says_so_and_does_not_succeed() -> None:
    core = standby(is_well=False)
    core.take_effects()
    core.received(1, m.Promise(1), NOTHING, 0.1)
    core.received(1, m.Beat(1, {}), NOTHING, 0.1)
    core.received(1, m.Succeed(1), NOTHING, 0.1)
    said = core.take_effects()
    assert fx.Reply(1, m.Heard(1, is_well=False)) in said
    assert not any(isinstance(effect, fx.ClaimShard) for effect in said)


def test_a_doubted_copy_promises_nothing_below_the_epoch_of_the_record() -> None:
    """R11: an old copy of a disk has forgotten what it promised, too."""
    core = standby(is_well=True)
    state = core._state
    state.distrust()
    record = ShardRecord(epoch=5, leader="n2", claim="", replicas=["n1", "n2", "n3"])
    core.seen(Versioned(record, 2), True, 0.0)
    core.take_effects()
    core.received(1, m.Promise(4), NOTHING, 0.1)
    assert core.take_effects() == [fx.Reply(1, m.Outdated(5), is_last=True)] and state.promised == 0
    core.received(2, m.Promise(5), NOTHING, 0.1)
    assert state.promised == 5
