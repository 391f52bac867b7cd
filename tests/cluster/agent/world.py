"""Agents of several nodes on one control plane in memory, with a clock that jumps. Real Unix sockets, no sleep."""

import inspect
import tempfile
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path

import structlog
import trio
import trio.testing

from rumq.cluster.agent.agent import Agent
from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.agent.node_identity import node_identity
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import SOCKET_NAME, AgentMessage, Claim, Seen
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from tests.cluster.control.memory_control import MemoryControl, MemoryStore

WALL_US = 1_800_000_000_000_000


class Node:
    """A node of the world: its agent, and links of its processes."""

    def __init__(self, world: "World", name: str, **settings: object) -> None:
        self.world = world
        self.data = world.folder / str(settings.pop("folder", name))
        values: dict[str, object] = {
            "data": str(self.data), "cluster": "demo", "node": name, "shards": 3, "replicas": 3, "host": name,
            "port": 7883, "mqtt": [f"{name}:1883"], "version": "1", "incarnation": f"run of {name}",
        }  # fmt: skip
        self.settings = AgentSettings(**(values | settings))  # type: ignore[arg-type]
        self.plane = MemoryControl(world.store)
        self.clock_ahead_us = 0
        self.scope = trio.CancelScope()

    async def start(self) -> None:
        settings = self.settings
        self.identity = node_identity(self.data, settings.cluster, settings.node, has_log=settings.has_log)
        self.agent = Agent(settings, self.identity, self.plane, self.clock_us)
        await self.world.nursery.start(self._run)
        await settle()

    async def _run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.scope:
            await self.agent.run(task_status=task_status)

    def clock_us(self) -> int:
        return WALL_US + int(trio.current_time() * 1e6) + self.clock_ahead_us

    async def stop(self) -> None:
        """As at SIGTERM."""
        self.scope.cancel()
        await settle()

    async def die(self) -> None:
        """As at SIGKILL: the lease is not given up."""
        self.plane.is_unreachable = True
        await self.stop()

    def link(self, role: str = "shard", shard: int = 0) -> AgentSocket:
        return AgentSocket(str(self.data / SOCKET_NAME), role, shard)

    async def view(self) -> View:
        """As a process that has just been started is told it."""
        link = self.link("edge", -1)
        messages = await received(link)
        link.close()
        [seen] = messages
        assert isinstance(seen, Seen)
        return seen.view


class World:
    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.folder, self.nursery = folder, nursery
        self.store = MemoryStore()
        self.events: list[dict[str, object]] = []

    async def node(self, name: str, **settings: object) -> Node:
        node = Node(self, name, **settings)
        await node.start()
        return node

    async def three(self, **settings: object) -> list[Node]:
        return [await self.node(name, **settings) for name in ("n1", "n2", "n3")]

    def named(self, event: str) -> list[dict[str, object]]:
        return [each for each in self.events if each["event"] == event]


async def settle() -> None:
    """Until every task waits for time to pass or for somebody outside."""
    for _ in range(5):
        await trio.testing.wait_all_tasks_blocked()


async def received(link: AgentSocket) -> list[AgentMessage]:
    await settle()
    return link.receive()


def node_record(name: str, **values: object) -> NodeRecord:
    given: dict[str, object] = {
        "id": f"{name}#00", "host": name, "port": 7883, "mqtt": [], "zone": "", "incarnation": "a", "version": "1",
        "feature_level": 1, "has_log": False, "clock_us": 0,
    }  # fmt: skip
    return NodeRecord(**(given | values))  # type: ignore[arg-type]


def claim_of(view_shard: Versioned, leader: str, claim: str) -> Claim:
    held = view_shard.record
    record = ShardRecord(epoch=held.epoch + 1, leader=leader, claim=claim, replicas=held.replicas)
    return Claim(1, 0, view_shard.revision, record)


async def claimed_by(node: Node, claim: str) -> list[object]:
    link = node.link()
    [seen] = await received(link)
    assert isinstance(seen, Seen)
    link.send(claim_of(seen.view.shards[0], node.identity.id, claim))
    messages = list(await received(link))
    link.close()
    return messages


def in_world(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a world of its own. Time jumps when all wait."""

    @wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        async def main() -> None:
            with tempfile.TemporaryDirectory() as folder, structlog.testing.capture_logs() as events:
                async with trio.open_nursery() as nursery:
                    world = World(Path(folder), nursery)
                    world.events = events  # type: ignore[assignment]
                    await test(world, *args, **kwargs)
                    nursery.cancel_scope.cancel()

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))

    signature = inspect.signature(test)
    run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return run
