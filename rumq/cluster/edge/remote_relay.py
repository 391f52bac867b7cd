"""Clients whose session is on another node: bytes go both ways over a TCP connection of their own to its leader.

The leader serves that connection as the client's: keep alive, quotas, outbox are its. What the layers above TCP are
(TLS, WebSocket, a mount point) stays here. When another node leads the shard, the client's connection ends, and it
connects again."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from rumq.cluster.connections.dial import Dial, Later, dial
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.leaders import Leader, epoch_of
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.records import View
from rumq.cluster.edge.path_watch import LOOK_SECONDS, is_cut
from rumq.cluster.edge.placement import Arrival
from rumq.cluster.links.greeting import GATEWAY, Greeting
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN, HandoverState, encode_state
from rumq.net.pump import Pump
from rumq.net.relay import RELAY_BYTES, ClientEnd, RelaySocket

LAST_WORDS_SECONDS = 0.1  # of a leader that hands over


class RemoteRelays:
    """All of an edge."""

    def __init__(
        self, pump: Pump, addresses: HostAddresses, later: Later, tls: NodeTls | None = None
    ) -> None:
        """tls: None for plain bytes between nodes"""
        self._pump, self._addresses, self._later, self._tls = pump, addresses, later, tls
        self._view: View | None = None
        self._dials: dict[Arrival, tuple[Leader, Dial]] = {}  # that have not been answered
        self._sockets: defaultdict[tuple[int, int], set[RemoteSocket]] = defaultdict(
            set
        )  # by shard and epoch
        self._is_looking = False

    def __len__(self) -> int:
        """How many clients are relayed."""
        return sum(map(len, self._sockets.values()))

    def begin(
        self, leader: Leader, arrival: Arrival, taken: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Dial the leader for a client; `taken` or `failed` is called, perhaps before this returns."""
        assert self._view is not None
        address = self._addresses.maybe_find(leader.host)
        if address is None:
            failed(f"the address of {leader.host} is not known yet")
            return
        client = arrival.connection
        certificate = client.certificate
        state = encode_state(HandoverState(certificate)) if certificate is not None else b""
        policy = arrival.handshake.client.policy
        greeting = Greeting(
            "client", self._view.cluster, self._view.node, leader.shard, leader.epoch,
            listener=GATEWAY if policy.is_gateway else policy.index, handover=KNOWN if state else CLIENT,
            peer=client.peer,
        )  # fmt: skip

        def make(sock: socket.socket) -> Connection:
            return RemoteSocket(self._pump, sock, client.peer, RELAY_BYTES)

        def not_taken(why: str) -> None:
            self._dials.pop(arrival, None)
            failed(why)

        def attach(near: Connection, rest: bytes) -> None:
            self._dials.pop(arrival, None)
            if arrival.is_gone or epoch_of(self._view, leader.shard) > leader.epoch:
                near.close()
                failed("another leads the shard by now")
                return
            assert isinstance(near, RemoteSocket)
            taken()
            near.known = self._sockets[leader.shard, leader.epoch]
            near.known.add(near)
            self._look_later()
            ClientEnd(self._pump, client, near)
            client.resume_reading()
            if rest:
                self._pump.feed(near, rest)

        try:
            self._dials[arrival] = leader, dial(
                self._pump, (address, leader.port), greeting, state, arrival.data,
                make=make, taken=attach, failed=not_taken, later=self._later, tls=self._tls,
            )  # fmt: skip
        except OSError as fault:
            failed(fault.strerror or str(fault))

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """End the clients of leaders to which no path leads any more."""
        self._is_looking = False
        for key, sockets in list(self._sockets.items()):
            if is_cut(near.sock for near in sockets):
                for near in list(self._sockets.pop(key)):
                    near.link.lost("no way to the node that leads the shard")
        if len(self):
            self._look_later()

    def view_changed(self, view: View) -> None:
        """End the clients of those that lead no more, unless they do it themselves, and say why."""
        self._view = view
        for leader, each in list(self._dials.values()):
            if epoch_of(view, leader.shard) > leader.epoch:
                each.end()  # a process that is stopped does not answer, and its kernel accepts
        for key in list(self._sockets):
            shard, epoch = key
            if epoch_of(view, shard) > epoch:
                self._later(LAST_WORDS_SECONDS, partial(self._end, self._sockets.pop(key)))

    def _end(self, sockets: set[RemoteSocket]) -> None:
        for near in list(sockets):
            near.link.lost("another node leads the shard")


class RemoteSocket(RelaySocket):
    """Our socket to a leader on another node. known: where it is found while it is open"""

    __slots__ = ("known",)

    def __init__(self, pump: Pump, sock: socket.socket, peer: str, outbox_bytes_max: int) -> None:
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self.known: set[RemoteSocket] = set()

    def unlink(self) -> None:
        super().unlink()
        self.known.discard(self)
