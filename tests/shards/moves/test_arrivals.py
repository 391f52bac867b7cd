"""Clients of the leader before: what comes with them is checked, and whoever cannot go on is told."""

import socket

import pytest

from rumq.net.connection_handover import HandoverState, encode_state
from rumq.session.flow_control.listener_policy import OPEN
from rumq.session.moves.moved_client import encode_moved
from rumq.shards.moves.arrivals import continue_moved
from tests.conformance.wire import Kind
from tests.session.moves.test_moved_client import MOVED
from tests.shards.moves.world import OUTBOX_BYTES_MAX, Client, World


def test_one_without_a_session_gets_what_was_on_its_way_and_is_disconnected(world: World) -> None:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    client = Client(world, ours)
    world.clients.append(client)
    data = encode_state(HandoverState(None)) + encode_moved(MOVED)
    continue_moved(world.process.parts, OPEN, theirs, "10.0.0.1:1", data, OUTBOX_BYTES_MAX)
    world.turn()
    assert ours.recv(3) == b"out"
    last = client.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x8E)
    assert world.process.named("client.refused")[0]["reason"] == 0x8E


def test_what_is_no_state_serves_nobody(world: World) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError):
        continue_moved(world.process.parts, OPEN, theirs, "10.0.0.1:1", encode_state(HandoverState(None)), 1000)
    assert not world.process.parts.pump.connections
