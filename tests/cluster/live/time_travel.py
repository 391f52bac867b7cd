"""Harms in which something goes back in time: etcd as a whole, one node's disk, or the directories of its partitions.

As those of `harm.py`: each returns when it has healed. The record and the disks are copied while nobody writes them."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from examples.cluster import Member
from tests.cluster.live.cluster import signal_all
from tests.cluster.live.harm import KINDS, Harm, Kind, Scene, wait_until

YOUNG_S = 2.0  # of load, between a copy and its return


def etcd_restored(scene: Scene) -> Harm:
    """etcd goes back to before the last change of leaders, which a third node has slept through."""
    etcds = scene.live.cluster.etcds
    victim = scene.leader()
    sleeper = scene.random.choice([each for each in scene.live.nodes if each is not victim])
    harm = scene.began("etcd-restored", f"{victim.name} replaced while {sleeper.name} sleeps")
    with dead(scene, etcds):
        for each in etcds:
            copy(each.data, image_of(each))
    wait_until(lambda: scene.live.cluster.etcd_leader() is not None)
    with dead(scene, [sleeper]):
        os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda: victim.name not in {name_of(record) for record in scene.live.shard_records().values()})
        time.sleep(YOUNG_S)
        with dead(scene, etcds):
            for each in etcds:
                copy(image_of(each), each.data)
    return harm


def old_disk(scene: Scene) -> Harm:
    """A node comes back with a copy of its disk that is some seconds old."""
    victim = scene.random.choice(scene.live.nodes)
    harm = scene.began("old-disk", victim.name)
    with dead(scene, [victim]):
        copy(victim.data, image_of(victim))
    wait_until(lambda: victim.is_alive)
    time.sleep(YOUNG_S)
    with dead(scene, [victim]):
        copy(image_of(victim), victim.data)
    return harm


def empty_disk(scene: Scene) -> Harm:
    """The directories of a node's partitions are gone: their volume was not mounted."""
    victim = scene.random.choice(scene.live.nodes)
    harm = scene.began("empty-disk", victim.name)
    with dead(scene, [victim]):
        for each in Path(victim.data).iterdir():
            if each.is_dir() and each.name != "_cluster":
                shutil.rmtree(each)
    return harm


@contextmanager
def dead(scene: Scene, members: Sequence[Member]) -> Iterator[None]:
    """They are killed -9, and stay dead meanwhile."""
    names = {each.name for each in members}
    scene.live.cluster.held |= names
    signal_all([each.pid for each in members], signal.SIGKILL)
    wait_until(lambda: not any(each.is_alive for each in members))
    try:
        yield
    finally:
        scene.live.cluster.held -= names


def copy(source: Path | str, target: Path | str) -> None:
    """target: emptied before, and kept as the directory that it is, which may be the root of a disk of its own"""
    for each in Path(target).iterdir() if Path(target).is_dir() else ():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.sock", "filler"), dirs_exist_ok=True)


def image_of(member: Member) -> Path:
    return Path(f"{member.data}.image")


def name_of(record: dict[str, str]) -> str:
    return record["leader"].partition("#")[0]


BACK_IN_TIME: dict[str, Kind] = {
    "etcd-restored": etcd_restored, "old-disk": old_disk, "empty-disk": empty_disk,
}  # fmt: skip
EVERY_KIND = KINDS | BACK_IN_TIME
