"""What stands in the place of a link is one to the shard's driver too, also in what should never happen."""

import socket
from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.mqtt.reasons import Reason
from rumq.net.pump import Pump
from rumq.net.socket_stream import SocketStream
from rumq.net.transport.relay import relay
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.transport.transport_handshake import TransportHandshakes
from tests.faults.shard import Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), pump=Pump)
    yield made
    made.end()
    made.parts.pump.close()


def connected(shard: Shard) -> tuple[StreamConnection, socket.socket]:
    near, far = socket.socketpair()
    near.setblocking(False)
    pump = shard.parts.pump
    connection = StreamConnection(pump, near, "somebody", 1 << 16, shard.parts.clients.broker.welcome, relay)
    connection.use(SocketStream(near))
    handshakes = TransportHandshakes(pump, later=shard.parts.timers.later, event=shard.parts.events.tell)
    connection.handshake = handshakes.start(connection, "tls")
    pump.add(connection)
    return connection, far


@pytest.mark.parametrize("stage", ["opening", "relayed"])
def test_a_bug_of_ours_ends_one_connection(shard: Shard, stage: str) -> None:
    connection, far = connected(shard)
    if stage == "relayed":
        socket.close(relay(connection))
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        shard.parts.events.crashed(connection)
    for _ in range(3):
        shard.parts.pump.turn(0.0)
    (told,) = shard.told("client.crashed")
    assert told["peer"] == "somebody" and told["client_id"] is None
    assert far.recv(1) == b"" and not shard.parts.pump.connections
    far.close()


def test_an_end_of_a_relay_is_no_client(shard: Shard) -> None:
    connection, far = connected(shard)
    socket.close(relay(connection))
    links = [each.link for each in shard.parts.pump.connections.values()]
    assert sorted(link.is_bus for link in links) == [False, True]
    connection.link.dismiss(Reason.SERVER_SHUTTING_DOWN, "the broker is stopping")
    shard.parts.turn.drained(connection)
    for _ in range(3):
        shard.parts.pump.turn(0.0)
    assert far.recv(1) == b""  # the other shard's end is closed
    far.close()
