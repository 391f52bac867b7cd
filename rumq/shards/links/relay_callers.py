"""Connections of one node to the leader of a shard on another, by way of this leader: the link between them is cut.

What comes is dialled on directly, never by a further node, and bytes go both ways as they are. The end of one side is
the end of the other. Who may connect at all: `rumq.shards.links.cluster_listener`."""

from __future__ import annotations

import socket
from collections.abc import Callable

import msgspec

from rumq.cluster.connections.dial import DialOpening, DialUser, NodeDialer
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls, Tunnel
from rumq.cluster.control.leaders import maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting
from rumq.cluster.links.greeting_queue import GREETING_BYTES_MAX
from rumq.loop.ports import Timers
from rumq.net.connection import Connection
from rumq.net.frames import maybe_first
from rumq.net.pump import Pump
from rumq.net.transport.relay import RELAY_BYTES, RelaySocket
from rumq.shards.links.cluster_listener import GREETINGS, Caller

KINDS = ("bus", "client")
RELAYED_MAX = 10_000  # relayed connections at once


class RelayCallers:
    """The taker of greetings of the kind "relay", whose raw bytes are the greeting for the other leader."""

    def __init__(
        self, pump: Pump, addresses: HostAddresses, timers: Timers, view: Callable[[], View | None],
        tls: NodeTls | None,
    ) -> None:  # fmt: skip
        """tls: None for plain bytes between nodes"""
        self._pump, self._addresses, self._view = pump, addresses, view
        self._dialer = NodeDialer(lambda: pump, timers.later, tls)
        self._relayed: set[RelayedSocket] = set()

    def __len__(self) -> int:
        """How many are relayed."""
        return len(self._relayed)

    def take(self, caller: Caller) -> None:
        try:
            first = maybe_first(GREETINGS, caller.raw, GREETING_BYTES_MAX)
        except ValueError as fault:
            caller.refuse(str(fault))
            return
        view = self._view()
        greeting = first[0] if first is not None else None
        leader = maybe_leader(view, greeting.shard) if greeting is not None else None
        if first is None or greeting is None or greeting.kind not in KINDS:
            caller.refuse(f"only {' and '.join(KINDS)} connections are relayed")
        elif view is None or leader is None or leader.is_here:
            caller.refuse(f"no other node leads shard {greeting.shard} as far as this one knows")
        elif len(self._relayed) >= RELAYED_MAX:
            caller.refuse(f"{RELAYED_MAX} connections are relayed: try another node")
        elif (address := self._addresses.maybe_find(leader.host)) is None:
            caller.refuse(f"the address of {leader.host} is not known yet")
        else:
            inner = msgspec.structs.replace(greeting, node=view.node)
            self._dial(caller, leader.node, (address, leader.port), inner, first[1])

    def _dial(self, caller: Caller, node: str, address: tuple[str, int], greeting: Greeting, state: bytes) -> None:
        def make(sock: socket.socket) -> Connection:
            return RelayedSocket(self._pump, sock, f"{address[0]}:{address[1]}", self._relayed)

        def taken(near: Connection, rest: bytes) -> None:
            assert isinstance(near, RelayedSocket)
            caller.answer_taken(handler.epoch)
            far = Connection(self._pump, caller.sock, caller.greeting.node, RELAY_BYTES)
            Tunnel(self._pump, far, near)
            self._pump.add(far)
            if rest:
                self._pump.feed(near, rest)

        try:
            handler = self._dialer.dial(
                address, node, DialOpening(greeting, state, caller.rest), DialUser(make, taken, caller.refuse)
            )
        except OSError as fault:
            caller.refuse(fault.strerror or str(fault))


class RelayedSocket(RelaySocket):
    """Our socket to the other leader. known: where it is found while it is open"""

    __slots__ = ("_known",)

    def __init__(self, pump: Pump, sock: socket.socket, peer: str, known: set[RelayedSocket]) -> None:
        super().__init__(pump, sock, peer, RELAY_BYTES)
        self._known = known
        known.add(self)

    def unlink(self) -> None:
        super().unlink()
        self._known.discard(self)
