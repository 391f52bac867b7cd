"""What is done to a live cluster: each kind harms it, waits as long as the harm lasts, and heals it.

A kind returns when it has healed: a dead process is started again by the cluster itself. `Harm` says when it began and
whose clients cannot notice by themselves that their node is gone."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from examples.cluster import Member
from tests.cluster.live.cluster import LiveCluster, children, maybe_shard_pid, pause, signal_all
from tests.cluster.live.network import Network

PAUSE_S = 2.5
CUT_S = 3.0
ETCD_AWAY_S = 60.0
FULL_S = 2.0
DEAD_S = 30.0


@dataclass
class Harm:
    """kind: its name; began: monotonic seconds; silent: numbers of nodes whose clients hear nothing, not even an end

    healed: when the harm was over, or the dead were about to be started; ends: when all was as before"""

    kind: str
    began: float
    what: str
    silent: set[int] = field(default_factory=set)
    healed: float = 0.0
    ends: float = 0.0


class Scene(NamedTuple):
    """away_s: how long etcd is away in this run"""

    live: LiveCluster
    random: random.Random
    away_s: float = ETCD_AWAY_S

    def leader(self) -> Member:
        return self.random.choice(self.live.leaders())

    def began(self, kind: str, what: str, silent: set[int] | None = None) -> Harm:
        return Harm(kind, time.monotonic(), what, silent or set())


def kill_node(scene: Scene) -> Harm:
    """kill -9 of the first process of a node that leads a shard; its other processes die with it."""
    victim = scene.leader()
    harm = scene.began("kill-node", victim.name)
    os.kill(victim.pid, signal.SIGKILL)
    return harm


def kill_shard(scene: Scene) -> Harm:
    """kill -9 of the process that leads one shard."""
    victim = scene.leader()
    led = [n for n, record in scene.live.shard_records().items() if record["leader"].startswith(victim.name + "#")]
    shard = scene.random.choice(led) if led else 0
    pid = maybe_shard_pid(victim, shard)
    harm = scene.began("kill-shard", f"shard {shard} at {victim.name}, pid {pid}")
    signal_all([pid] if pid else [], signal.SIGKILL)
    return harm


def kill_child(scene: Scene) -> Harm:
    """kill -9 of any process of a node but its first: agent, edge, a standby, a leader."""
    victim = scene.random.choice(scene.live.nodes)
    pids = children(victim)
    pid = scene.random.choice(pids) if pids else victim.pid
    harm = scene.began("kill-child", f"{victim.name}, pid {pid}")
    signal_all([pid], signal.SIGKILL)
    return harm


def kill_two_nodes(scene: Scene) -> Harm:
    """No majority is left: nothing is acknowledged until one of them is back."""
    victims = scene.random.sample(scene.live.nodes, 2)
    harm = scene.began("kill-two-nodes", " ".join(each.name for each in victims))
    signal_all([each.pid for each in victims], signal.SIGKILL)
    return harm


def kill_all_nodes(scene: Scene) -> Harm:
    harm = scene.began("kill-all-nodes", "all")
    signal_all([each.pid for each in scene.live.nodes], signal.SIGKILL)
    return harm


def pause_node(scene: Scene) -> Harm:
    """SIGSTOP to all processes of a node that leads a shard, for longer than any patience; it wakes up deposed."""
    victim = scene.leader()
    harm = scene.began("pause-node", victim.name, {scene.live.number_of(victim)})
    pids = pause(victim)
    time.sleep(PAUSE_S)
    signal_all(pids, signal.SIGCONT)
    return harm


def short_pause(scene: Scene) -> Harm:
    """SIGSTOP for about as long as the others are patient: it wakes up just when it is being replaced."""
    victim = scene.leader()
    seconds = scene.random.uniform(0.2, 1.2)
    harm = scene.began("short-pause", f"{victim.name} for {seconds:.2f} s", {scene.live.number_of(victim)})
    pids = pause(victim)
    time.sleep(seconds)
    signal_all(pids, signal.SIGCONT)
    return harm


def kill_etcd_leader(scene: Scene) -> Harm:
    victim = scene.live.cluster.etcd_leader()
    harm = scene.began("kill-etcd-leader", victim.name if victim else "none")
    signal_all([victim.pid] if victim else [], signal.SIGKILL)
    return harm


def kill_node_and_etcd_leader(scene: Scene) -> Harm:
    node, etcd = scene.leader(), scene.live.cluster.etcd_leader()
    harm = scene.began("kill-node-and-etcd-leader", f"{node.name} {etcd.name if etcd else 'none'}")
    signal_all([node.pid, *([etcd.pid] if etcd else [])], signal.SIGKILL)
    return harm


def etcd_away(scene: Scene) -> Harm:
    """All of etcd is dead for a while: publishing goes on."""
    etcds = scene.live.cluster.etcds
    scene.live.cluster.held |= {each.name for each in etcds}
    harm = scene.began("etcd-away", f"{scene.away_s:g} s")
    signal_all([each.pid for each in etcds], signal.SIGKILL)
    time.sleep(scene.away_s)
    scene.live.cluster.held -= {each.name for each in etcds}
    return harm


def rolling_restart(scene: Scene) -> Harm:
    """SIGTERM to each node in turn, when the one before serves again."""
    harm = scene.began("rolling-restart", "all")
    for node in scene.live.nodes:
        pid = node.pid
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda node=node, pid=pid: node.is_alive and node.pid != pid)
        number = scene.live.number_of(node)
        wait_until(lambda number=number: all(
            scene.live.cluster.serves(number, shard, 2.0) for shard in range(scene.live.cluster.shards)
        ))  # fmt: skip
    return harm


def full_disk(scene: Scene) -> Harm:
    """A file takes all the room of a leader's disk, and is removed after a while."""
    victim = scene.leader()
    harm = scene.began("full-disk", victim.name)
    filler = Path(victim.data) / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
    except OSError:
        pass  # full
    time.sleep(FULL_S)
    filler.unlink()
    return harm


def cut_off(scene: Scene) -> Harm:
    """A leader is cut off from the other nodes and etcd, in both directions."""
    return _cut(scene, "cut-off", out=True, into=True)


def cut_out(scene: Scene) -> Harm:
    """What a leader sends to the other nodes and etcd is lost; it still hears them."""
    return _cut(scene, "cut-out", out=True, into=False)


def cut_in(scene: Scene) -> Harm:
    """A leader hears nothing of the other nodes and etcd; they hear it."""
    return _cut(scene, "cut-in", out=False, into=True)


def cut_from_etcd(scene: Scene) -> Harm:
    """A leader is cut off from etcd alone: nothing needs to happen."""
    return _cut(scene, "cut-from-etcd", out=True, into=True, nodes=False)


def cut_one_link(scene: Scene) -> Harm:
    """Two nodes do not hear each other; both hear the third (a bridge)."""
    network = network_of(scene)
    one, other = scene.random.sample(scene.live.nodes, 2)
    harm = scene.began(
        "cut-one-link", f"{one.name} {other.name}", {scene.live.number_of(one), scene.live.number_of(other)}
    )
    network.cut(one.name, other.name)
    network.cut(other.name, one.name)
    time.sleep(CUT_S)
    network.heal()
    return harm


def _cut(scene: Scene, kind: str, *, out: bool, into: bool, nodes: bool = True) -> Harm:
    network, victim = network_of(scene), scene.leader()
    others = [each.name for each in scene.live.cluster.members if each is not victim]
    if not nodes:
        others = [each.name for each in scene.live.cluster.etcds]
    harm = scene.began(kind, victim.name, {scene.live.number_of(victim)})
    for other in others:
        if out:
            network.cut(victim.name, other)
        if into:
            network.cut(other, victim.name)
    time.sleep(CUT_S)
    network.heal()
    return harm


def network_of(scene: Scene) -> Network:
    assert scene.live.network is not None, "cuts need network namespaces"
    return scene.live.network


def wait_until(is_it: Callable[[], bool]) -> None:
    until = time.monotonic() + DEAD_S
    while not is_it() and time.monotonic() < until:
        time.sleep(0.05)


Kind = Callable[[Scene], Harm]
ON_LOOPBACK: dict[str, Kind] = {
    "kill-node": kill_node, "kill-shard": kill_shard, "kill-child": kill_child, "pause-node": pause_node,
    "short-pause": short_pause, "kill-etcd-leader": kill_etcd_leader, "kill-two-nodes": kill_two_nodes,
    "kill-node-and-etcd-leader": kill_node_and_etcd_leader, "kill-all-nodes": kill_all_nodes, "etcd-away": etcd_away,
    "rolling-restart": rolling_restart,
}  # fmt: skip
IN_NAMESPACES: dict[str, Kind] = {
    "cut-off": cut_off, "cut-out": cut_out, "cut-in": cut_in, "cut-from-etcd": cut_from_etcd,
    "cut-one-link": cut_one_link,
}  # fmt: skip
ON_SMALL_DISKS: dict[str, Kind] = {"full-disk": full_disk}
KINDS = ON_LOOPBACK | IN_NAMESPACES | ON_SMALL_DISKS
