"""Which process each client goes to, and how long it waits for one."""

import socket

import msgspec
import pytest

from rumq.cluster.edge import placement
from rumq.net.listening.transports import PLAIN
from tests.cluster.edge.world import HERE, NAMES, World, connect_of
from tests.conformance import wire
from tests.net.websocket.test_websocket import Plain


def client(world: World) -> Plain:
    return Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]


@pytest.mark.parametrize("shard", [0, 1])
def test_a_client_whose_shard_is_led_here_goes_to_its_process(world: World, shard: int) -> None:
    world.lead({0: HERE, 1: HERE})
    peer = client(world)
    peer.write(connect_of(shard) + b"more")
    (found,) = world.until(lambda: world.given(shard))
    name = f"127.0.0.1:{peer.sock.getsockname()[1]}"
    assert found == ("client", name, connect_of(shard) + b"more", 0)
    assert not world.edge.pump.connections and not world.given(1 - shard)
    assert len(world.edge.pump.pending_logins) == 0


def test_connect_may_come_byte_by_byte(world: World) -> None:
    world.lead({0: HERE, 1: HERE})
    peer = client(world)
    for byte in connect_of(0):
        peer.write(bytes([byte]))
        world.turn()
    (found,) = world.until(lambda: world.given(0))
    assert found[2] == connect_of(0)


def test_a_client_without_an_id_goes_to_a_shard_that_is_led_here(world: World) -> None:
    there = world.leader(0)
    world.lead({0: there, 1: HERE})
    for _ in range(3):
        peer = client(world)
        peer.write(wire.connect(""))
        assert [found[2] for found in world.until(lambda: world.given(1))] == [wire.connect("")]
    assert not there.greeted


def test_a_client_waits_until_its_shard_has_a_leader(world: World) -> None:
    peer = client(world)
    peer.write(connect_of(0))
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(9.0)
    world.lead({1: HERE})
    world.turn()
    assert len(world.edge.placement) == 1
    world.lead({0: HERE, 1: HERE})
    (found,) = world.until(lambda: world.given(0))
    assert found[2] == connect_of(0) and len(world.edge.placement) == 0


@pytest.mark.parametrize(("version", "answer"), [(4, bytes([0x20, 2, 0, 3])), (5, bytes([0x20, 3, 0, 0x88, 0]))])
def test_a_client_that_nobody_leads_is_refused_in_the_words_of_its_version(
    world: World, version: int, answer: bytes
) -> None:
    peer = client(world)
    peer.write(connect_of(0, version=version))
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(placement.WAITING_SECONDS - 0.5)
    assert not world.events
    world.wait(1.0)
    assert peer.read(100) == answer
    (told,) = world.named("client.refused")
    assert told["client_id"] == NAMES[0] and told["reason"] == 0x88
    assert len(world.edge.placement) == 0


def test_those_that_wait_are_bounded_in_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "WAITING_MAX", 1)
    first, second = client(world), client(world)
    first.write(connect_of(0, version=5))
    world.until(lambda: len(world.edge.placement) == 1)
    second.write(connect_of(0, version=5))
    assert second.read(4)[3] == 0x88
    assert len(world.edge.placement) == 1


def test_a_client_that_is_gone_is_not_passed_on(world: World) -> None:
    peer = client(world)
    peer.write(connect_of(0))
    (connection,) = world.until(lambda: list(world.edge.pump.connections.values()))
    world.until(lambda: len(world.edge.placement) == 1)
    connection.link.end(with_will=False)
    world.turn(2)
    world.lead({0: HERE, 1: HERE})
    world.turn(2)
    assert len(world.edge.placement) == 0 and not world.given(0)


def test_connect_that_does_not_come_in_time_ends_the_connection(world: World) -> None:
    peer = client(world)
    peer.write(connect_of(0)[:5])
    world.until(lambda: world.edge.pump.connections)
    world.wait(6.0)
    assert peer.read(1) == b"" and world.named("client.refused")[0]["reason"] == 0x8D


def test_what_is_no_connect_is_refused_here(world: World) -> None:
    world.lead({0: HERE, 1: HERE})
    peer = client(world)
    peer.write(wire.publish("t", b"x"))
    assert peer.read(1) == b"" and world.named("client.refused")


def test_a_connection_that_a_leader_here_gives_back_is_placed_again(world: World) -> None:
    """Its home is another shard than the one it was given to: the client id was not the one of CONNECT."""

    world.lead({0: HERE, 1: HERE})
    ours, theirs = socket.socketpair()
    world.local[1].give(2, "client", theirs.detach(), "203.0.113.7:1", connect_of(0), 0)
    world.local[1].flush()
    (found,) = world.until(lambda: world.given(0))
    assert found == ("client", "203.0.113.7:1", connect_of(0), 0)
    ours.close()


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        (4, bytes([0x20, 2, 0, 3])),
        (5, bytes([0x20, 13, 0, 0x9C, 10, 0x1C, 0, 7]) + b"n5:1883"),
    ],
)
def test_a_client_whose_leader_cannot_be_reached_is_told_where_that_is(
    world: World, version: int, answer: bytes
) -> None:
    leader = world.leader(0)
    view = world.view({0: leader})
    nodes = [msgspec.structs.replace(each, mqtt=["n5:1883"]) for each in view.nodes]
    leader.listener.close()
    leader.sock.close()
    world.edge.placement.view_changed(msgspec.structs.replace(view, nodes=nodes))
    peer = client(world)
    peer.write(connect_of(0, version=version))
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(placement.WAITING_SECONDS + 0.5)
    assert peer.read(100) == answer
