"""A disk that was restored from an old copy is noticed before it votes."""

from pathlib import Path

import trio

from commitlog.replica.replica_state import DOUBTED, load_state
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.agent.disk_stamp import DiskStamp
from rumq.cluster.agent.node_membership import ANNOUNCE_EVERY
from tests.cluster.agent.world import Node, World, in_world


def test_a_stamp_rises_and_is_kept(tmp_path: Path) -> None:
    disk = DiskStamp(tmp_path)
    assert (disk.rise(), disk.rise()) == (1, 2)
    again = DiskStamp(tmp_path)
    assert again.stamp == 2 and not again.met(2) and again.restored == 0


def test_a_lower_stamp_than_the_noted_one_is_an_old_copy_until_the_end_of_its_days(tmp_path: Path) -> None:
    disk = DiskStamp(tmp_path)
    disk.rise()
    assert disk.met(5) and disk.restored == disk.stamp == 5
    assert not disk.met(5), "told once"
    disk.rise()
    assert DiskStamp(tmp_path).restored == 5 and DiskStamp(tmp_path).stamp == 6


@in_world
async def test_an_old_data_directory_is_doubted_before_its_processes_see_a_view(world: World) -> None:
    first, _, _ = await world.three()
    assert (await first.view()).restored == 0
    stamp = first.data / "_cluster" / "stamp.json"
    old = stamp.read_bytes()
    await trio.sleep(2 * ANNOUNCE_EVERY + 1)
    await first.stop()
    stamp.write_bytes(old)
    again = Node(world, "n1")
    await again.start()
    assert (await again.view()).restored > 0
    [event] = world.named("cluster.disk_restored")
    assert again.identity.id in str(event["why"])


@in_world
async def test_a_start_on_the_same_disk_is_no_restoration(world: World) -> None:
    first, _, _ = await world.three()
    await trio.sleep(2 * ANNOUNCE_EVERY + 1)
    await first.die()
    again = Node(world, "n1")
    await again.start()
    assert (await again.view()).restored == 0 and not world.named("cluster.disk_restored")


def test_a_copy_is_doubted_once_for_each_restoration() -> None:
    files = SimulatedFiles()
    state = load_state(files, "data", 0, "disk", has_log=False)
    state.open(3)
    assert not state.note_restored(0) and state.opened == 3
    assert state.note_restored(7) and state.opened == DOUBTED
    state.open(4)
    state = load_state(files, "data", 0, "disk", has_log=True)
    assert not state.note_restored(7) and state.opened == 4, "a leader has repaired it"
    assert state.note_restored(8) and state.opened == DOUBTED
