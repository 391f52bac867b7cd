"""A control plane for one shard: one record, changed by compare-and-swap. Each node asks it over a way of its own,
which is cut, late, or loses answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.cluster.control.records import ShardRecord, Versioned

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

LIST_SECONDS = 0.5
CURRENT_SECONDS = 1.5


class Agent:
    """What a node knows of the record. Faults: is_cut, loses_answers, is_stale: sees nothing new"""

    def __init__(self, view: Versioned) -> None:
        self.view = view
        self.asked_at = 0.0
        self.is_cut = self.loses_answers = self.is_stale = False


class ControlPlane:
    is_conditional = True

    def __init__(self, world: World, record: ShardRecord, nodes: list[str]) -> None:
        self.world = world
        self.stored = Versioned(record, 1)
        self.agents = {node: Agent(self.stored) for node in nodes}

    def is_current(self, node: str) -> bool:
        return self.world.now - self.agents[node].asked_at < CURRENT_SECONDS

    def list_all(self) -> None:
        """Every agent lists what there is, now and then."""
        world = self.world
        for name, agent in self.agents.items():
            if not agent.is_cut:
                agent.asked_at = world.now
                if not agent.is_stale:
                    agent.view = self.stored
            self._tell(name)
        world.at(world.now + LIST_SECONDS, self.list_all)

    def _tell(self, name: str) -> None:
        process = self.world.nodes[name].process
        if process is not None:
            process.viewed(self.agents[name].view, self.is_current(name))

    def _watched(self, name: str, view: Versioned) -> None:
        agent = self.agents[name]
        if not agent.is_cut and not agent.is_stale and view.revision > agent.view.revision:
            agent.view = view
            self._tell(name)

    def swap(self, process: Process, revision: int, record: ShardRecord) -> None:
        """Its result is told to the process by `claimed`."""
        world, agent = self.world, self.agents[process.node.name]
        if agent.is_cut:
            world.at(world.now + world.random.uniform(0.1, 1.0), process.claimed, record, False, False, None)
            return
        delay = world.random.choice((0.002, 0.002, 0.004, 0.004, 0.05, 0.5))
        world.at(world.now + delay, self._swap, process, revision, record)

    def _swap(self, process: Process, revision: int, record: ShardRecord) -> None:
        world, agent = self.world, self.agents[process.node.name]
        won = self.stored.revision == revision or not self.is_conditional
        if won:
            self.stored = Versioned(record, self.stored.revision + 1)
            for name in self.agents:
                world.at(
                    world.now + world.random.choice((0.003, 0.005, 0.01, 0.2)),
                    self._watched,
                    name,
                    self.stored,
                )
            world.swapped(process, record)
        if agent.is_cut or agent.loses_answers:
            world.at(world.now + 1.0, process.claimed, record, False, False, None)
        else:
            world.at(world.now + 0.002, process.claimed, record, won, True, self.stored)
