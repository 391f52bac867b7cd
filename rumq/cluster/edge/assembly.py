"""An edge, put together from its parts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from rumq.cluster.connections.agent_link import AgentLink, here_of
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.agent_messages import Here
from rumq.cluster.control.records import View
from rumq.cluster.edge.edge_handshake import EdgeBroker, EdgeHandshake
from rumq.cluster.edge.edge_turn import EdgeTurn
from rumq.cluster.edge.placement import EdgePlacement
from rumq.cluster.edge.remote_relay import RemoteRelays
from rumq.cluster.edge.travellers import Travellers
from rumq.cluster.links.client_moves import MOVED
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import ShardClock, TimerQueue, system_time
from rumq.net.connection import CLOSED, Connection
from rumq.net.connection_handover import CLIENT, KNOWN, decode_state
from rumq.net.listening.transports import continue_handed_over, known_connection
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import FdPassing, ShardSocket
from rumq.net.transport.relay import RELAY_BYTES
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.moved_client import decode_moved


@dataclass(frozen=True, slots=True)
class Edge:
    """The parts that are used from outside."""

    clock: ShardClock
    timers: TimerQueue
    events: ShardEvents
    turn: EdgeTurn
    pump: Pump
    broker: EdgeBroker
    doors: FdPassing
    relays: RemoteRelays
    placement: EdgePlacement
    travellers: Travellers
    seen: Callable[[View], None]
    agent: AgentLink

    def welcome(self, connection: Connection, policy: ListenerPolicy) -> EdgeHandshake:
        """The handler of a new connection."""
        return self.broker.welcome(self.placement, connection, policy)


class EdgePlatform(NamedTuple):
    """What an edge gets from its machine. read_clock: as of `ShardClock`; pump: makes it, around a turn"""

    read_clock: Callable[[], tuple[int, float]] = system_time
    pump: Callable[[Any], Pump] = Pump


SYSTEM = EdgePlatform()


def build_edge(
    doors: Sequence[ShardSocket],
    policies: Sequence[ListenerPolicy],
    limits: Limits,
    agent_path: str,
    tell: Callable[..., None],
    *,
    platform: EdgePlatform = SYSTEM,
    here: Here | None = None,
    tls: NodeTls | None = None,
) -> Edge:
    """doors: of the cluster's shards by number, and the edge's own behind them; policies: of the listeners

    tls: of connections to other nodes, None for plain bytes"""
    count = len(doors) - 1
    clock = ShardClock(platform.read_clock)
    timers = TimerQueue(clock)
    events = ShardEvents(tell)
    turn = EdgeTurn(clock, timers, events)
    pump = platform.pump(turn)
    passing = FdPassing(list(doors), count, timers.later, events.failed)
    broker = EdgeBroker(clock, pump.pending_logins, events, limits)
    relays = RemoteRelays(pump, HostAddresses(), timers.later, tls)
    placement = EdgePlacement(count, passing, relays, pump.pending_logins, clock, timers)
    travellers = Travellers(passing, relays, clock, timers)
    relays.moving = travellers.add

    def seen(view: View) -> None:
        placement.view_changed(view)
        travellers.view_changed(view)

    agent = AgentLink(
        pump, agent_path, here or here_of("edge", -1), later=timers.later, seen=seen, tell=events.tell
    )  # fmt: skip
    turn.connect((broker.end_turn, passing.flush), lambda: broker.keep_alive_monitor.next_check)
    edge = Edge(clock, timers, events, turn, pump, broker, passing, relays, placement, travellers, seen, agent)
    take_handed_over(edge, policies)
    pump.watch(passing.fd, passing.hear)
    return edge


def take_handed_over(edge: Edge, policies: Sequence[ListenerPolicy]) -> None:
    """Connections that leaders on this node give to the edge."""
    pump, takers = edge.pump, edge.doors.takers

    def take(kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        """One that a leader here gives back: its client's home is elsewhere."""
        continue_handed_over(
            pump, kind, sock, peer, data, RELAY_BYTES,
            lambda connection: edge.welcome(connection, policies[listener]),
        )  # fmt: skip

    def take_moved(sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        """A client of a leader here that goes to another one."""
        state, rest = decode_state(data)
        moved = decode_moved(rest)
        connection = known_connection(pump, sock, peer, state, RELAY_BYTES, lambda _: CLOSED)
        connection.pause_reading()
        connection.link = CLOSED
        pump.add(connection)
        edge.travellers.add(connection, moved, policies[listener])

    takers[MOVED] = take_moved
    for kind in (CLIENT, KNOWN):
        takers[kind] = partial(take, kind)
