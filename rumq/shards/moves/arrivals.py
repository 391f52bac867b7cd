"""Clients of the leader before, whose connections come with their state: from this node's edge, or from another's."""

from __future__ import annotations

import socket

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packet_types import PacketType
from rumq.net.connection import CLOSED, Connection
from rumq.net.connection_handover import decode_state
from rumq.net.listening.transports import known_connection
from rumq.session.connection.client_state import Client
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.continuation import continue_client
from rumq.session.moves.moved_client import MovedClient, decode_moved
from rumq.session.ports.transport import ConnectionHandler
from rumq.session.protocol.reason_strings import allowed_reason
from rumq.shards.assembly.shard import Shard


def continue_moved(
    shard: Shard, policy: ListenerPolicy, sock: socket.socket, peer: str, data: bytes, outbox_bytes_max: int
) -> None:
    """Serve a client as the leader before did. raises: ValueError for what is no state"""
    state, rest = decode_state(data)
    moved = decode_moved(rest)
    connection = known_connection(shard.pump, sock, peer, state, outbox_bytes_max, closed)
    client = Client(shard.clients.broker, connection, policy)
    shard.clients.broker.shard_totals.sockets += 1
    try:
        continue_client(client, moved)
    except MqttFault as fault:
        shard.events.of_client("client.refused", client, reason=int(fault.reason), why=fault.message)
        refuse(shard, connection, moved, fault)
        return
    shard.pump.add(connection)
    if moved.unparsed:
        shard.pump.feed(connection, moved.unparsed)
    else:
        shard.pump.read_next_turn(connection)


def refuse(shard: Shard, connection: Connection, moved: MovedClient, fault: MqttFault) -> None:
    """It cannot go on here: say so behind what was on its way, and close."""
    connection.link = CLOSED
    shard.pump.add(connection)
    connection.write(moved.unsent)
    if moved.version == 5:
        connection.write(encode(p.Disconnect(allowed_reason(PacketType.DISCONNECT, fault.reason)), 5))
    connection.close()


def closed(connection: Connection) -> ConnectionHandler:
    return CLOSED
