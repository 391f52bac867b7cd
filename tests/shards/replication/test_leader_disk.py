"""R10: a leader whose disk is not well has a follower lead whose disk is; without one it stays."""

from types import SimpleNamespace
from typing import Any

from commitlog.errors import LogFailure
from rumq.cluster.replication import messages as m
from rumq.shards.replication.leader_disk import HUNG_SECONDS, DiskProblem, maybe_problem
from tests.shards.replication.world import World

FULL, FAILS = DiskProblem("the disk is full", can_write=True), DiskProblem("the disk fails", can_write=False)


class Disk:
    """What the leader and each follower know of their disks."""

    def __init__(self, world: World) -> None:
        self.problem: DiskProblem | None = None
        self._followers = world.followers
        world.replication.succession.disk_problem = lambda: self.problem  # type: ignore[method-assign]

    def unwell(self, *names: str) -> None:
        """Those of these followers are, and no others."""
        for name, follower in self._followers.items():
            follower.is_well = name not in names


def successors(world: World) -> list[str]:
    return [name for name, follower in world.followers.items() if follower.kinds(m.Succeed)]


def asked(world: World) -> list[str]:
    return [fields["to"] for fields in world.told("cluster.resigns")]


def test_a_leader_whose_disk_fails_asks_a_follower_that_is_well_and_ends() -> None:
    world = World("n1", "n2").begin()
    disk = Disk(world)
    disk.unwell("n1")
    world.after(0.1)
    disk.problem = FAILS
    world.after(0.1)
    assert asked(world) == successors(world) == ["n2"]
    assert world.ended == 0, "the message has to leave first"
    world.after(0.2)
    assert world.ended == 1


def test_a_leader_whose_disk_is_full_hands_over_what_it_has_written() -> None:
    world = World("n1", "n2").begin()
    disk = Disk(world)
    world.publish()
    disk.problem = FULL
    world.after(0.1, but=("n1", "n2"))
    assert asked(world) == ["n1"] and successors(world) == [], "it lacks the last record"
    world.after(0.1)
    world.after(0.1)
    assert successors(world) == ["n1"] and world.ended == 0


def test_a_leader_stays_while_no_follower_is_well() -> None:
    world = World("n1", "n2").begin()
    disk = Disk(world)
    disk.problem = FAILS
    disk.unwell("n1", "n2")
    for _ in range(100):
        world.after(0.1)
    assert len(asked(world)) <= 1, "what the followers say comes with their answers to a beat"
    world = World("n1", "n2").begin()
    disk = Disk(world)
    disk.unwell("n1", "n2")
    world.after(0.1)
    disk.problem = FAILS
    for _ in range(100):
        world.after(0.1)
    assert asked(world) == successors(world) == [] and world.ended == 0


class Groups:
    def __init__(self) -> None:
        self.slow_groups = [0, 0]
        self.busy = 0.0

    def busy_seconds(self) -> float:
        return self.busy


def test_what_counts_as_a_problem() -> None:
    partition: Any = SimpleNamespace(offline=None)
    groups, space = Groups(), SimpleNamespace(is_full=False, is_unreachable=False)

    def look() -> DiskProblem | None:
        return maybe_problem([partition], groups, space)

    assert look() is None
    groups.slow_groups = [1, 1]
    assert look() is None, "a pause of the machine makes one group of each partition slow"
    groups.slow_groups = [0, 2]
    found = look()
    assert found is not None and "slow" in found.why and not found.can_write
    groups.slow_groups, groups.busy = [0, 0], HUNG_SECONDS
    found = look()
    assert found is not None and not found.can_write
    groups.busy, space.is_full = 0.0, True
    assert look() == FULL
    partition.offline = LogFailure("data", "no")
    found = look()
    assert found is not None and "fails" in found.why and not found.can_write
