"""Clients whose session is on another node: bytes go both ways over a TCP connection of their own to its leader.

The leader serves that connection as the client's: keep alive, quotas, outbox are its. What the layers above TCP are
(TLS, WebSocket, a mount point) stays here. When another node leads the shard by a planned hand-over, the client's
connection goes on there (`rumq.cluster.edge.travellers`); else it ends, and the client connects again."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rumq.cluster.connections.detour import Attempt, Ways
from rumq.cluster.connections.dial import DialOpening, DialUser, Later, NodeDialer
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.leaders import LeaderAddress, is_replaced
from rumq.cluster.control.records import View
from rumq.cluster.edge.movable_relay import MovableClientEnd, MovableShardEnd
from rumq.cluster.edge.move_links import MoveLinks
from rumq.cluster.edge.path_watch import LOOK_SECONDS, is_cut
from rumq.cluster.edge.placement import Arrival
from rumq.cluster.edge.travellers import Traveller
from rumq.cluster.links.client_moves import MOVED
from rumq.cluster.links.greeting import GATEWAY, Greeting
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN, HandoverState, encode_state
from rumq.net.pump import Pump
from rumq.net.transport.relay import RELAY_BYTES, RelaySocket
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.moved_client import MovedClient

LAST_WORDS_SECONDS = 0.1  # that a leader that hands over gets for its last bytes
MOVE_SECONDS_MAX = 2.0  # until the state of a client is here that its leader gives to the next one
Moving = Callable[[Connection, MovedClient, ListenerPolicy], None]


class ClientToRelay(NamedTuple):
    """kind: as of `rumq.net.connection_handover`; state: likewise; data: bytes of the client that nobody handled"""

    connection: Connection
    policy: ListenerPolicy
    kind: str
    state: bytes
    data: bytes
    is_gone: Callable[[], bool]


class RemoteRelays:
    """All of an edge."""

    def __init__(self, pump: Pump, addresses: HostAddresses, later: Later, tls: NodeTls | None = None) -> None:
        """tls: None for plain bytes between nodes"""
        self._pump, self._addresses, self._later = pump, addresses, later
        dialer = NodeDialer(lambda: pump, later, tls)
        self._ways = Ways(addresses, dialer, later)
        self._view: View | None = None
        # dials that no leader has answered yet
        self._dials: dict[Arrival | Traveller, tuple[LeaderAddress, Attempt]] = {}
        self._sockets: defaultdict[LeaderAddress, set[RemoteSocket]] = defaultdict(set)
        self._is_looking = False
        self._moves = MoveLinks(pump, dialer)
        self.moving: Moving  # takes clients that go to another leader

    def __len__(self) -> int:
        """How many clients are relayed."""
        return sum(map(len, self._sockets.values()))

    def begin(
        self, leader: LeaderAddress, arrival: Arrival, taken: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Dial the leader for a client; `taken` or `failed` is called, perhaps before this returns."""
        certificate = arrival.connection.certificate
        state = encode_state(HandoverState(certificate)) if certificate is not None else b""
        policy = arrival.handshake.client.policy
        kind = KNOWN if state else CLIENT
        client = ClientToRelay(arrival.connection, policy, kind, state, arrival.data, lambda: arrival.is_gone)
        self._dial(leader, arrival, client, taken, failed)

    def carry(
        self, leader: LeaderAddress, traveller: Traveller, state: bytes, data: bytes, taken: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:  # fmt: skip
        """As `begin`, for a client that comes from the leader before. data: bytes of the client that nobody handled"""
        client = ClientToRelay(traveller.transport, traveller.policy, MOVED, state, data, lambda: traveller.closed)
        self._dial(leader, traveller, client, taken, failed)

    def leave(self, reference: str) -> None:
        """This edge is stopping. reference: where its clients are sent"""
        self._moves.leave(reference)

    def _dial(
        self, leader: LeaderAddress, who: Arrival | Traveller, relayed: ClientToRelay, taken: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:  # fmt: skip
        client, policy, kind, state, data, is_gone = relayed
        assert self._view is not None
        number = self._moves.new_number()
        greeting = Greeting(
            "client", self._view.cluster, self._view.node, leader.shard, leader.epoch,
            listener=GATEWAY if policy.is_gateway else policy.index, handover=kind, peer=client.peer,
            edge=self._moves.edge, relay=number,
        )  # fmt: skip
        key = (leader.shard, leader.epoch)
        cluster, node = self._view.cluster, self._view.node
        there = self._view.node_of(leader.node)
        moves = there is not None and there.moves

        def make(sock: socket.socket) -> Connection:
            return RemoteSocket(self._pump, sock, client.peer, RELAY_BYTES)

        def not_taken(why: str) -> None:
            self._dials.pop(who, None)
            failed(why)

        def attach(near: Connection, rest: bytes) -> None:
            self._dials.pop(who, None)
            if is_gone() or is_replaced(self._view, leader):
                near.close()
                failed("another leads the shard by now")
                return
            assert isinstance(near, RemoteSocket)
            taken()
            near.known = self._sockets[leader]
            near.known.add(near)
            self._look_later()
            end = MovableClientEnd(self._pump, client, near, policy, len(data), self._departed, self._later)
            if kind == MOVED:
                end.greeted()
            near.gone = partial(self._moves.discard, number)
            self._moves.add(number, end, key)
            if moves and (address := self._addresses.maybe_find(leader.host)) is not None:
                self._moves.want(cluster, node, leader, address)
            client.resume_reading()
            if rest:
                self._pump.feed(near, rest)

        try:
            self._dials[who] = (
                leader,
                self._ways.dial(
                    self._view, leader, DialOpening(greeting, state, data), DialUser(make, attach, not_taken)
                ),
            )
        except OSError as fault:
            failed(fault.strerror or str(fault))

    def _departed(self, end: MovableClientEnd, moved: MovedClient) -> None:
        self.moving(end.transport, moved, end.policy)

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """End the clients of leaders to which no path leads any more."""
        self._is_looking = False
        for leader, sockets in list(self._sockets.items()):
            if is_cut(near.sock for near in sockets):
                for near in list(self._sockets.pop(leader)):
                    near.link.lost("no way to the node that leads the shard")
        if len(self):
            self._look_later()

    def view_changed(self, view: View) -> None:
        """End the clients of those that lead no more, unless they do it themselves, and say why."""
        self._view = view
        for leader, each in list(self._dials.values()):
            if is_replaced(view, leader):
                each.end()  # a process that is stopped does not answer, and its kernel accepts
        for leader in list(self._sockets):
            if not self._sockets[leader]:
                del self._sockets[leader]
            elif is_replaced(view, leader):
                sockets = self._sockets.pop(leader)
                held = {near for near in sockets if near.is_held}
                for near in held:
                    near.known = held
                self._later(LAST_WORDS_SECONDS, partial(self._end, sockets - held))
                self._later(MOVE_SECONDS_MAX, partial(self._end, held))

    def _end(self, sockets: set[RemoteSocket]) -> None:
        for near in list(sockets):
            near.link.lost("another node leads the shard")


class RemoteSocket(RelaySocket):
    """Our socket to a leader on another node. known: where it is found while it is open; gone: told when it is not"""

    __slots__ = ("gone", "known")

    def __init__(self, pump: Pump, sock: socket.socket, peer: str, outbox_bytes_max: int) -> None:
        super().__init__(pump, sock, peer, outbox_bytes_max)
        self.known: set[RemoteSocket] = set()
        self.gone: Callable[[], None] = lambda: None

    @property
    def is_held(self) -> bool:
        """Whether its leader is about to give the client to the next one."""
        end = self.shard_end
        return isinstance(end, MovableShardEnd) and end.is_held

    def unlink(self) -> None:
        super().unlink()
        self.known.discard(self)
        self.gone()
