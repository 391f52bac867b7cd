"""Connections of clients: from the broker's listening sockets, and from other shards that hand them over."""
# compiled: warm

from __future__ import annotations

import socket
from collections.abc import Callable, Container, Mapping
from functools import partial

from rumq.auth.identity import Certificate
from rumq.events.event_log import tell
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.net.listening.listener import SPARE
from rumq.net.listening.transports import continue_handed_over
from rumq.net.sockets.fd_limit import raise_limit, room_for_connections
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.settings.table import Settings
from rumq.shards.assembly.shard import Shard

EARLY_SECONDS = 0.005
UNKNOWN_SECONDS_MAX = 10.0  # until a client is refused whose listener is not known here


def connections_max(settings: Settings, partitions: int, sockets_a_client: int = 1) -> list[int]:
    """Limits of the listeners, in their order, in sockets: from the settings, and from the available descriptors, with
    an event if these are fewer."""
    limit = raise_limit()
    room = max(1, room_for_connections(limit, partitions + 1) - 2 * SPARE)
    allowed = [sockets_a_client * each.connections_max for each in settings.listeners]
    wanted = max(allowed)
    if room < wanted:
        tell("listener.limited", connections_max=room, wanted=wanted, descriptors=limit)
    return [min(each, room) for each in allowed]


Moved = Callable[[socket.socket, str, bytes, ListenerPolicy], None]
"""Goes on with a client of the leader before: (socket, peer, state, policy)."""

HandedOver = Callable[[str, socket.socket, str, bytes, int], None]
"""Takes (kind, socket, peer, state and bytes read so far, number of the listener)."""


def take_handed_over(
    shard: Shard, policies: Mapping[int, ListenerPolicy], outbox_bytes_max: int,
    may_come: Container[int] = (), moved: Moved | None = None,
) -> HandedOver:  # fmt: skip
    """Accept connections that other processes hand over, with the bytes read so far. returns: what takes them

    policies: by number of the listener; may_come: listeners that another shard may know before this one does
    moved: takes those of any other kind than a new client's; None: there are none"""
    # They wait until their sessions are recovered, and their listeners known.
    early: list[tuple[float, str, socket.socket, str, bytes, int]] = []

    def take(kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        take_until(shard.clock.monotonic + UNKNOWN_SECONDS_MAX, kind, sock, peer, data, listener)

    def take_until(until: float, kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        policy = policies.get(listener)
        is_coming = policy is None and listener in may_come and shard.clock.monotonic < until
        if is_coming or not shard.lifecycle.is_restored:
            if not early:
                shard.timers.later(EARLY_SECONDS, take_early)
            early.append((until, kind, sock, peer, data, listener))
            return
        if policy is None:
            sock.close()
            shard.events.tell("connection.refused", peer=peer, transport="mqtt", why="its listener was removed")
            return
        if kind not in (CLIENT, KNOWN):
            assert moved is not None
            moved(sock, peer, data, policy)
            return
        continue_handed_over(
            shard.pump, kind, sock, peer, data, outbox_bytes_max,
            lambda connection: welcome(shard, connection, policy),
        )  # fmt: skip

    def take_early() -> None:
        waiting = early[:]
        early.clear()
        for each in waiting:
            take_until(*each)

    assert shard.cluster.fd_passing is not None
    for kind in (CLIENT, KNOWN):
        shard.cluster.fd_passing.takers[kind] = partial(take, kind)
    return take


def welcome(shard: Shard, connection: Connection, policy: ListenerPolicy) -> Handshake:
    """The protocol of a new connection, with its verified TLS certificate."""
    handshake = shard.clients.broker.welcome(connection, policy)
    shown = connection.certificate
    if shown is not None:
        names = (*shown.dns, *shown.email, *shown.uri)
        handshake.client.certificate = Certificate(shown.common_name or "", shown.subject, names)
    return handshake
