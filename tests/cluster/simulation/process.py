"""A shard's process on one node: a blocking loop that stands by, and leads in the same process once it has won."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from commitlog.errors import LogError
from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication.messages import ReplicaMessage
from tests.cluster.simulation.disk import Crash, Disk, DiskImage
from tests.cluster.simulation.network import Link

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

RETRY_SECONDS = 0.05


class Role(Protocol):
    @property
    def next_deadline(self) -> float: ...
    def received(self, link: Link, message: ReplicaMessage, raw: memoryview) -> None: ...
    def lost(self, link: Link) -> None: ...
    def connected(self, peer: str) -> None: ...
    def answered(self, peer: str, message: ReplicaMessage, raw: memoryview) -> None: ...
    def unreachable(self, peer: str) -> None: ...
    def viewed(self, view: Versioned, is_current: bool, is_back: bool) -> None: ...
    def claimed(self, record: ShardRecord, won: bool, known: bool, view: Versioned | None) -> None: ...
    def tick(self) -> None: ...
    def marks(self) -> dict[str, int]: ...
    def carry_out(self) -> None: ...


class Node:
    """A machine. process: None while it has none; is_up: it has power

    images: copies of its disk, with the highest epoch that was seen then"""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name, self.disk = name, disk
        self.is_up = True
        self.process: Process | None = None
        self.runs = 0
        self.images: list[tuple[DiskImage, int]] = []


class Process:
    def __init__(self, world: World, node: Node) -> None:
        self.world, self.node = world, node
        self.is_alive = True
        self.busy_until = 0.0
        self.role: Role | None = None
        self.dialed: dict[str, Link] = {}
        self.dialing: set[str] = set()
        self.accepted: dict[int, Link] = {}
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._timer_at = float("inf")
        self._wakes = False

    # The loop

    def take(self, call: Callable[..., None], *args: object) -> None:
        if not self.is_alive:
            return
        if self._inbox or self.busy_until > self.world.now:
            self._inbox.append((call, args))
            self._wake()
        else:
            self._do(call, *args)

    def pause(self, seconds: float) -> None:
        self.busy_until = max(self.busy_until, self.world.now + seconds)
        self._wake()

    def resume(self) -> None:
        self.busy_until = min(self.busy_until, self.world.now)
        self.world.at(self.world.now, self._woken)

    def _wake(self) -> None:
        if not self._wakes:
            self._wakes = True
            self.world.at(max(self.world.now, self.busy_until), self._woken)

    def _woken(self) -> None:
        self._wakes = False
        if not self.is_alive:
            return
        if self.busy_until > self.world.now:
            self._wake()
            return
        self._carry_out()
        while self._inbox and self.is_alive and self.busy_until <= self.world.now:
            call, args = self._inbox.popleft()
            self._do(call, *args)
        if self._inbox:
            self._wake()

    def _do(self, call: Callable[..., None], *args: object) -> None:
        disk = self.node.disk
        try:
            call(*args)
        except Crash as crash:
            self.world.count["crashes inside"] += 1
            self.world.kill(self.node, power=crash.power)
            return
        except (OSError, LogError) as fault:
            self.world.tell(f"{self.node.name} ends: {fault}")
            self.world.count["processes ended by their disk"] += 1
            self.world.kill(self.node, power=False)
            return
        if disk.spent > 0.001:
            self.busy_until = self.world.now + disk.spent
            disk.spent = 0.0
            self._wake()
        else:
            disk.spent = 0.0
            self._carry_out()

    def _carry_out(self) -> None:
        if self.role is not None and self.is_alive:
            self._guarded(self.role.carry_out)
            self._set_timer()

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Crash as crash:
            self.world.kill(self.node, power=crash.power)
        except (OSError, LogError) as fault:
            self.world.tell(f"{self.node.name} ends: {fault}")
            self.world.kill(self.node, power=False)

    def _set_timer(self) -> None:
        if self.role is not None and self.is_alive and self.role.next_deadline < self._timer_at:
            self._timer_at = max(self.world.now, self.role.next_deadline)
            self.world.at(self._timer_at, self._timer, self._timer_at)

    def _timer(self, at: float) -> None:
        if at == self._timer_at and self.is_alive:
            self.take(self._tick)

    def _tick(self) -> None:
        self._timer_at = float("inf")
        assert self.role is not None
        self.role.tick()

    def stop(self) -> None:
        """The process is gone; its links with it."""
        self.is_alive = False
        for link in (*self.dialed.values(), *self.accepted.values()):
            side = 0 if link.sides[0] is self else 1
            if self.node.is_up:
                link.close(side, is_reset=self.world.random.random() < 0.5)
            else:
                link.is_open[side] = False
                link.lose(side, self.world.random.randrange(4))
                link.world.at(self.world.now + self.world.random.uniform(0.3, 3.0), link.end, 1 - side)

    # Links

    def dial(self, peer: str) -> None:
        if peer in self.dialed or peer in self.dialing:
            return
        self.dialing.add(peer)
        self.world.at(self.world.now + self.world.latency(), self._dialed, peer)

    def _dialed(self, peer: str) -> None:
        world = self.world
        if not self.is_alive:
            return
        here, node = self.node.name, world.nodes[peer]
        if (here, peer) in world.blocked or (peer, here) in world.blocked or not node.is_up:
            world.at(world.now + world.random.uniform(0.3, 1.0), self.take, self._failed, peer)
        elif node.process is None:
            world.at(world.now + 0.001, self.take, self._failed, peer)
        else:
            link = world.link(self, node.process)
            node.process.accepted[link.number] = link
            self.take(self._up, peer, link)

    def _up(self, peer: str, link: Link) -> None:
        self.dialing.discard(peer)
        if link.is_open[0]:
            self.dialed[peer] = link
            assert self.role is not None
            self.role.connected(peer)
        else:
            self._failed(peer)

    def _failed(self, peer: str) -> None:
        self.dialing.discard(peer)
        assert self.role is not None
        self.role.unreachable(peer)

    def hang_up(self, peer: str) -> None:
        link = self.dialed.pop(peer, None)
        if link is not None:
            link.close(0)

    def arrived(self, link: Link, side: int, message: ReplicaMessage, raw: memoryview) -> None:
        self.take(self._arrived, link, side, message, raw)

    def _arrived(self, link: Link, side: int, message: ReplicaMessage, raw: memoryview) -> None:
        assert self.role is not None
        if side == 1:
            if link.number in self.accepted:  # else this process has closed it
                self.role.received(link, message, raw)
        elif self.dialed.get(link.peer) is link:
            self.role.answered(link.peer, message, raw)

    def link_ended(self, link: Link, side: int) -> None:
        self.take(self._link_ended, link, side)

    def _link_ended(self, link: Link, side: int) -> None:
        assert self.role is not None
        if side == 1:
            if self.accepted.pop(link.number, None) is not None:
                self.role.lost(link)
        elif self.dialed.get(link.peer) is link:
            del self.dialed[link.peer]
            self.role.unreachable(link.peer)

    def close_accepted(self, link: Link) -> None:
        if self.accepted.pop(link.number, None) is not None:
            link.close(1)

    # The control plane

    def viewed(self, view: Versioned, is_current: bool, is_back: bool) -> None:
        """is_back: the control plane was restored; the view has what was seen before"""
        if self.role is not None:
            self.take(self._viewed, view, is_current, is_back)

    def _viewed(self, view: Versioned, is_current: bool, is_back: bool) -> None:
        assert self.role is not None
        self.role.viewed(view, is_current, is_back)

    def claimed(self, record: ShardRecord, won: bool, known: bool, view: Versioned | None) -> None:
        self.take(self._claimed, record, won, known, view)

    def _claimed(self, record: ShardRecord, won: bool, known: bool, view: Versioned | None) -> None:
        assert self.role is not None
        self.role.claimed(record, won, known, view)
