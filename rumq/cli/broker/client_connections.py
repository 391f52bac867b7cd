"""Connections of clients: from the broker's listening sockets, and from other shards that hand them over."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

from rumq.auth.identity import Certificate
from rumq.cli.wiring.limits import limit_pending_logins
from rumq.cli.wiring.listening_sockets import ListeningSocket
from rumq.config import Settings
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.net.fd_limit import raise_limit, room_for_connections
from rumq.net.listener import SPARE, Listener
from rumq.net.transport_handshake import TransportHandshakes
from rumq.net.transports import ConnectionSetup, Transports, continue_handed_over
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.shards.assembly import Shard
from rumq.shards.stats.event_log import tell

EARLY_SECONDS = 0.005


def open_listeners(
    settings: Settings, sockets: list[ListeningSocket], shard: Shard, policies: list[ListenerPolicy],
    transports: list[Transports],
) -> list[Listener]:  # fmt: skip
    """Accept from the broker's sockets, which all shards share."""
    pump, later, event = shard.pump, shard.timers.later, shard.events.tell
    connections = connections_max(settings, len(shard.store.own))
    shard.logins.connections_max = dict(enumerate(connections))
    pump.pending_logins.on_shed = lambda holder, shed: event("connection.shed", address=holder, shed=shed)
    limit_pending_logins(settings, pump.pending_logins)
    handshakes = TransportHandshakes(
        pump, later=later, event=event, count_max=settings.listener.tls_handshakes_max
    )

    def listener(number: int, sock: socket.socket) -> Listener:
        setup = ConnectionSetup(
            transports[number], handshakes, pump, settings.mqtt.outbox_bytes_max,
            welcome=lambda connection: welcome(shard, connection, policies[number]),
        )  # fmt: skip
        return Listener(sock, setup, connections_max=connections[number], event=event, later=later)

    return [listener(*each) for each in sockets]


def connections_max(settings: Settings, partitions: int, sockets_a_client: int = 1) -> list[int]:
    """Limits by listener, in sockets: from the settings, and from the available descriptors, with an event if these are
    fewer."""
    limit = raise_limit()
    room = max(1, room_for_connections(limit, partitions + 1) - 2 * SPARE)
    allowed = [sockets_a_client * each.connections_max for each in settings.listeners]
    wanted = max(allowed)
    if room < wanted:
        tell("listener.limited", connections_max=room, wanted=wanted, descriptors=limit)
    return [min(each, room) for each in allowed]


HandedOver = Callable[[str, socket.socket, str, bytes, int], None]
"""Takes (kind, socket, peer, state and bytes read so far, number of the listener)."""


def take_handed_over(shard: Shard, policies: list[ListenerPolicy], outbox_bytes_max: int) -> HandedOver:
    """Accept connections that other processes hand over, with the bytes read so far. returns: what takes them"""

    early: list[
        tuple[str, socket.socket, str, bytes, int]
    ] = []  # they wait until their sessions are recovered

    def take(kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        if not shard.lifecycle.is_restored:
            if not early:
                shard.timers.later(EARLY_SECONDS, take_early)
            early.append((kind, sock, peer, data, listener))
            return
        continue_handed_over(
            shard.pump, kind, sock, peer, data, outbox_bytes_max,
            lambda connection: welcome(shard, connection, policies[listener]),
        )  # fmt: skip

    def take_early() -> None:
        waiting = early[:]
        early.clear()
        for each in waiting:
            take(*each)

    assert shard.fd_passing is not None
    for kind in (CLIENT, KNOWN):
        shard.fd_passing.takers[kind] = partial(take, kind)
    return take


def welcome(shard: Shard, connection: Connection, policy: ListenerPolicy) -> Handshake:
    """The protocol of a new connection, with its verified TLS certificate."""
    handshake = shard.broker.welcome(connection, policy)
    shown = connection.certificate
    if shown is not None:
        names = (*shown.dns, *shown.email, *shown.uri)
        handshake.client.certificate = Certificate(shown.common_name or "", shown.subject, names)
    return handshake
