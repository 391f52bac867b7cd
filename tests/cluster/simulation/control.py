"""A control plane for one shard: one record, changed by compare-and-swap. Each node asks it over a way of its own,
which is cut, late, or loses answers. It can be restored to an earlier state. What a node makes of what it reads is the
product's `ViewTracker`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rumq.cluster.control.control_plane import ControlSnapshot
from rumq.cluster.control.records import ClusterRecord, ShardRecord, Versioned
from rumq.cluster.control.view_tracker import ViewTracker

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

LIST_SECONDS = 0.5
CURRENT_SECONDS = 1.5
CLUSTER = ClusterRecord(id="sim", shards=1, replicas=3, feature_level=1, created_us=0)


class Epochs:
    """`SeenEpochs`: on the node's disk. seen: the highest epoch"""

    def __init__(self) -> None:
        self.seen = 0

    def epoch_of(self, shard: int) -> int:
        return self.seen

    def note(self, epochs: Mapping[int, int]) -> None:
        self.seen = max(self.seen, epochs[0])


class SilentTracker(ViewTracker):
    """The world counts what a tracker would tell."""

    def _tell_back(self, shard: int, epoch: int) -> None: ...


class Agent:
    """What a node knows of the record. Faults: is_cut, loses_answers, is_stale: sees nothing new"""

    def __init__(self, node: str, stored: Versioned) -> None:
        self._node = node
        self.epochs = Epochs()
        self.asked_at = 0.0
        self.is_cut = self.loses_answers = self.is_stale = False
        self.start(stored, 0.0)

    def start(self, stored: Versioned, now: float) -> None:
        """Its process starts: it knows what is on the disk, and what it reads."""
        self.tracker = SilentTracker(self._node, CLUSTER, self.epochs)  # type: ignore[arg-type]
        self.read(stored, now)

    def read(self, stored: Versioned, now: float) -> None:
        self.tracker.take(ControlSnapshot(cluster=CLUSTER, nodes=[], shards=[stored]), now, 0)

    @property
    def view(self) -> Versioned:
        assert self.tracker.view is not None
        return self.tracker.view.shards[0]

    @property
    def is_back(self) -> bool:
        """The record that was read is older than one that was seen before."""
        assert self.tracker.view is not None
        return bool(self.tracker.view.epochs_back)


class ControlPlane:
    is_conditional = True

    def __init__(self, world: World, record: ShardRecord, nodes: list[str]) -> None:
        self.world = world
        self.stored = Versioned(record, 1)
        self.earlier = [self.stored]
        self.was_restored = False
        self.agents = {node: Agent(node, self.stored) for node in nodes}

    def is_current(self, node: str) -> bool:
        return self.world.now - self.agents[node].asked_at < CURRENT_SECONDS

    def restore(self, stored: Versioned) -> None:
        """A snapshot is put back. What was changed since is forgotten, and numbers are given out again."""
        self.stored, self.was_restored = stored, True
        for agent in self.agents.values():
            agent.asked_at = -CURRENT_SECONDS

    def list_all(self) -> None:
        """Every agent lists what there is, now and then."""
        world = self.world
        for name, agent in self.agents.items():
            if not agent.is_cut:
                agent.asked_at = world.now
                if not agent.is_stale:
                    agent.read(self.stored, world.now)
            self._tell(name)
        world.at(world.now + LIST_SECONDS, self.list_all)

    def _tell(self, name: str) -> None:
        process = self.world.nodes[name].process
        if process is not None:
            agent = self.agents[name]
            process.viewed(agent.view, self.is_current(name), agent.is_back)

    def _watched(self, name: str) -> None:
        agent = self.agents[name]
        if not agent.is_cut and not agent.is_stale:
            agent.read(self.stored, self.world.now)
            self._tell(name)

    def swap(self, process: Process, revision: int, record: ShardRecord) -> None:
        """Its result is told to the process by `claimed`."""
        world, agent = self.world, self.agents[process.node.name]
        if not agent.tracker.may_claim(0, record.epoch):
            world.at(world.now, process.claimed, record, False, True, None)
        elif agent.is_cut:
            world.at(world.now + world.random.uniform(0.1, 1.0), process.claimed, record, False, False, None)
        else:
            delay = world.random.choice((0.002, 0.002, 0.004, 0.004, 0.05, 0.5))
            world.at(world.now + delay, self._swap, process, revision, record)

    def _swap(self, process: Process, revision: int, record: ShardRecord) -> None:
        world, agent = self.world, self.agents[process.node.name]
        won = self.stored.revision == revision or not self.is_conditional
        if won:
            was, self.stored = self.stored.record, Versioned(record, self.stored.revision + 1)
            self.earlier.append(self.stored)
            for name in self.agents:
                delay = world.random.choice((0.003, 0.005, 0.01, 0.2))
                world.at(world.now + delay, self._watched, name)
            world.swapped(process, record, was, self.was_restored)
        if agent.is_cut or agent.loses_answers:
            world.at(world.now + 1.0, process.claimed, record, False, False, None)
        else:
            agent.tracker.put(0, self.stored)
            world.at(world.now + 0.002, process.claimed, record, won, True, self.stored)
