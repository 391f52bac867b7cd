"""A way to a leader that cannot be reached directly, though others reach it: by the leader of another shard.

One link between two nodes may be cut while a third node reaches both. A connection that is not established within
DIRECT_SECONDS goes by such a node, whose leader dials for it (`rumq.shards.links.relay_callers`). The direct attempt is
ended first, so nobody is connected twice."""

from __future__ import annotations

from itertools import count

from rumq.cluster.connections.dial import USUAL, Dial, DialOpening, DialUser, Later, NodeDialer, SocketOptions
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.control.leaders import LeaderAddress, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting
from rumq.net.frames import encoded

DIRECT_SECONDS = 0.4  # until a connection is established, which takes one round trip
CUT_SECONDS = 5.0  # so long nobody tries the direct way again


def detours(view: View | None, leader: LeaderAddress) -> list[LeaderAddress]:
    """Leaders on third nodes, one of each."""
    found: dict[str, LeaderAddress] = {}
    for shard in range(len(view.shards) if view is not None else 0):
        other = maybe_leader(view, shard)
        if other is not None and not other.is_here and other.node != leader.node:
            found.setdefault(other.node, other)
    return list(found.values())


class Ways:
    """How this process reaches leaders. It remembers nodes that it could not reach, for a while."""

    def __init__(self, addresses: HostAddresses, dialer: NodeDialer, later: Later) -> None:
        self.addresses, self._dialer, self._later = addresses, dialer, later
        self._cut: set[str] = set()
        self._turns = count()

    def dial(
        self, view: View, leader: LeaderAddress, opening: DialOpening, user: DialUser, options: SocketOptions = USUAL,
        *, is_direct: bool = False,
    ) -> Attempt:  # fmt: skip
        """As `NodeDialer.dial`. is_direct: go by no other node. raises: OSError"""
        failed, greeting = user.failed, opening.greeting
        others = [] if is_direct else detours(view, leader)
        attempt = Attempt()

        def by_another() -> None:
            other = others[next(self._turns) % len(others)]
            address = self.addresses.maybe_find(other.host)
            if address is None:
                raise OSError(f"the address of {other.host} is not known yet")
            outer = Greeting("relay", greeting.cluster, greeting.node, other.shard, other.epoch)
            attempt.is_detour = True
            attempt.handler = self._dialer.dial(
                (address, other.port), other.node,
                DialOpening(outer, encoded(greeting, [opening.raw]), opening.behind),
                user._replace(failed=lambda why: failed(f"by way of {other.node}: {why}")), options,
            )  # fmt: skip

        def look() -> None:
            if attempt.handler is None or attempt.handler.closed or not attempt.handler.is_connecting:
                return
            self._cut.add(leader.node)
            self._later(CUT_SECONDS, lambda: self._cut.discard(leader.node))
            if is_direct:
                attempt.handler.end()
            if not others:
                return
            attempt.handler.give_up()
            try:
                by_another()
            except OSError as fault:
                failed(fault.strerror or str(fault))

        if others and leader.node in self._cut:
            by_another()
            return attempt
        address = self.addresses.maybe_find(leader.host)
        if address is None:
            raise OSError(f"the address of {leader.host} is not known yet")
        attempt.handler = self._dialer.dial((address, leader.port), leader.node, opening, user, options)
        self._later(DIRECT_SECONDS, look)
        return attempt

    def is_cut(self, node: str) -> bool:
        """Whether a node could not be reached directly of late."""
        return node in self._cut


class Attempt:
    """One connection on its way. is_detour: by another node"""

    def __init__(self) -> None:
        self.handler: Dial | None = None
        self.is_detour = False

    @property
    def epoch(self) -> int:
        """Of the leader that has taken it."""
        return self.handler.epoch if self.handler is not None else 0

    def give_up(self) -> None:
        if self.handler is not None:
            self.handler.give_up()

    def end(self) -> None:
        """Give it up, which is told as a failure."""
        if self.handler is not None:
            self.handler.end()
