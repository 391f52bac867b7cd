"""Links between processes: in order, delayed, and cut anywhere. Paths between nodes may be blocked in one direction.

A blocked path holds what was sent; either end may give its link up meanwhile, and what it had sent may still arrive
when the path is free again, at an end that has not given up yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.cluster.replication.messages import ReplicaMessage

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

NOTHING = memoryview(b"")
End = tuple[ReplicaMessage | None, memoryview]  # None: the link ends here


class Link:
    """Side 0 has dialled, side 1 has accepted. peer: of side 0, the node that it has dialled"""

    __slots__ = (
        "cut_at", "held", "is_open", "last_at", "number", "peer", "sent", "sides", "world",
    )  # fmt: skip

    def __init__(self, world: World, number: int, dialer: Process, acceptor: Process) -> None:
        self.world, self.number, self.peer = world, number, acceptor.node.name
        self.sides = (dialer, acceptor)
        self.is_open = [True, True]
        self.last_at = [0.0, 0.0]
        self.sent = [0, 0]
        self.cut_at: list[int | None] = [None, None]  # what was sent from here on is lost
        self.held: list[list[tuple[int, End]]] = [[], []]

    def send(self, side: int, message: ReplicaMessage | None, raw: memoryview = NOTHING) -> None:
        """From a side to the other."""
        if message is not None and not self.is_open[side]:
            return
        world = self.world
        when = max(self.last_at[side], world.now + world.latency())
        self.last_at[side] = when
        number = self.sent[side]
        self.sent[side] = number + 1
        world.at(when, self._arrive, side, number, (message, raw))

    def _arrive(self, side: int, number: int, what: End) -> None:
        source, target = self.sides[side], self.sides[1 - side]
        if not self.is_open[1 - side]:
            return
        if self.held[side] or (source.node.name, target.node.name) in self.world.blocked:
            self.held[side].append((number, what))
            return
        self._deliver(side, number, what)

    def _deliver(self, side: int, number: int, what: End) -> None:
        cut_at = self.cut_at[side]
        message, raw = what
        if message is None:
            self.end(1 - side)
        elif cut_at is None or number < cut_at:
            self.sides[1 - side].arrived(self, 1 - side, message, raw)

    def release(self) -> None:
        """The path is free again."""
        for side in (0, 1):
            if (self.sides[side].node.name, self.sides[1 - side].node.name) not in self.world.blocked:
                held, self.held[side] = self.held[side], []
                for number, what in held:
                    if self.is_open[1 - side]:
                        self._deliver(side, number, what)

    def end(self, side: int) -> None:
        """This side knows that the link is over."""
        if self.is_open[side]:
            self.is_open[side] = False
            self.sides[side].link_ended(self, side)
            self._forget()

    def close(self, side: int, *, is_reset: bool = False) -> None:
        """This side's process closes it, or ends. is_reset: a part of what it has sent lately is lost"""
        if not self.is_open[side]:
            return
        self.is_open[side] = False
        if is_reset:
            self.lose(side, self.world.random.randrange(4))
        self.send(side, None)
        self._forget()

    def lose(self, side: int, count: int) -> None:
        """What this side has sent last, that much and all that it sends yet."""
        cut_at = max(0, self.sent[side] - count)
        earlier = self.cut_at[side]
        self.cut_at[side] = cut_at if earlier is None else min(earlier, cut_at)

    def expire(self, side: int) -> None:
        """Nothing was heard for long: this side gives up. The other side may never hear of it, or late."""
        source, target = self.sides[side].node.name, self.sides[1 - side].node.name
        if not self.is_open[side]:
            return
        is_blocked = (source, target) in self.world.blocked or (target, source) in self.world.blocked
        if not is_blocked and self.is_open[1 - side]:
            return
        self.is_open[side] = False
        self.sides[side].link_ended(self, side)
        if self.world.random.random() < 0.5:
            self.send(side, None)
        else:
            self.world.at(self.world.now + self.world.random.uniform(0.5, 3.0), self.end, 1 - side)
        self._forget()

    def _forget(self) -> None:
        if not self.is_open[0] and not self.is_open[1]:
            self.world.links.pop(self.number, None)
