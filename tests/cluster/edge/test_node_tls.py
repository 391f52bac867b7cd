"""Mutual TLS between nodes: relays and links of the bus work as without, and strangers get nothing."""

from typing import Any

import pytest

from rumq.cluster.connections.node_tls import NodeTls
from rumq.net.listening.transports import PLAIN
from tests.cluster.edge.world import World, connect_of
from tests.cluster.node_tls import pump_tls
from tests.net.authorities import Authorities
from tests.net.site import dialled
from tests.net.websocket.test_websocket import Plain
from tests.shards.links.world import World as Links

BIG = bytes(range(256)) * 4096
CONNECT = connect_of(0)


@pytest.fixture
def node_tls(authorities: Authorities) -> NodeTls:
    return pump_tls(authorities)


def relayed(world: World) -> tuple[Plain, Any]:
    leader = world.leader(0)
    world.lead({0: leader})
    client = Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]
    client.write(CONNECT)
    assert client.read(len(CONNECT)) == CONNECT
    return client, leader.links[0]


def test_bytes_go_both_ways_and_nothing_is_readable_between(world: World) -> None:
    client, link = relayed(world)
    for at in range(0, len(BIG), 1 << 16):
        client.write(BIG[at : at + (1 << 16)])
        assert client.read(1 << 16) == BIG[at : at + (1 << 16)]
    assert link.transport.peer == f"127.0.0.1:{client.sock.getsockname()[1]}"
    raw = dialled(world.leaders[0].sock.getsockname())  # a node without TLS
    raw.sendall(b"\x40" + bytes(99))
    raw.setblocking(False)
    world.until(lambda: [why for name, why in world.leaders[0].events if name == "connection.refused"])
    raw.close()
    client.close()


def test_a_client_that_does_not_read_stops_its_leader(world: World) -> None:
    client, link = relayed(world)
    offered = 0
    while not (link.transport.blocked and world.turn(30) is None and link.transport.blocked):
        link.transport.write(BIG)
        offered += 1
        world.turn(30)
    assert client.read(offered * len(BIG)) == BIG * offered
    client.close()


def test_the_end_of_either_side_is_the_others(world: World) -> None:
    client, link = relayed(world)
    client.write(b"last words")
    client.close()
    world.until(lambda: link.lost_why)
    assert link.got == CONNECT + b"last words"
    client, link = relayed(world)
    link.transport.write(b"bye")
    link.transport.close()
    assert client.read(9) == b"bye"
    world.until(lambda: not world.edge.pump.connections)


def test_a_node_with_a_certificate_of_another_authority_is_no_node(world: World, authorities: Authorities) -> None:
    world.tls = pump_tls(authorities, authorities.node("c1", "n2", of_other=True), "other-ca")
    leader = world.leader(0)
    world.lead({0: leader})
    client = Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]
    client.write(connect_of(0, version=5))
    world.until(lambda: len(world.edge.placement) == 1)
    world.wait(10.5)
    assert client.read(4)[3] == 0x88 and not leader.greeted
    client.close()


def strangers(authorities: Authorities, node: str) -> list[str]:
    """Certificates of the nodes' authority of a device, another node and another cluster."""
    return ["client", authorities.node("c1", "n7"), authorities.node("c2", node)]


@pytest.mark.parametrize("who", range(3))
def test_a_leader_that_is_another_node_gets_no_byte_of_a_client(
    world: World, authorities: Authorities, who: int
) -> None:
    told: list[dict[str, Any]] = []
    mine = pump_tls(authorities, tell=lambda name, **fields: told.append({"name": name, **fields}))
    world.edge.relays._ways._dialer._tls = mine
    world.tls = pump_tls(authorities, strangers(authorities, "n5")[who])
    leader = world.leader(0)
    world.lead({0: leader})
    client = Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]
    client.write(connect_of(0, version=5))
    world.until(lambda: told)
    assert told[0]["name"] == "cluster.certificate_refused" and told[0]["node"].startswith("n5#")
    world.turn(30)
    assert not leader.greeted and not [name for name, _ in leader.events if name == "task.failed"]
    client.close()


@pytest.mark.parametrize("who", range(3))
def test_an_edge_that_is_another_node_relays_nobody(world: World, authorities: Authorities, who: int) -> None:
    world.edge.relays._ways._dialer._tls = pump_tls(authorities, strangers(authorities, "n1")[who])
    leader = world.leader(0)
    world.lead({0: leader})
    client = Plain(world, world.listen(PLAIN))  # type: ignore[arg-type]
    client.write(connect_of(0, version=5))
    refused = world.until(lambda: [fields for name, fields in leader.events if name == "connection.refused"])
    assert "rumq://c1/node/n1" in refused[0]["why"] and not leader.greeted
    client.close()


@pytest.mark.parametrize("who", range(3))
def test_a_link_of_the_bus_of_another_node_is_refused(authorities: Authorities, who: int) -> None:
    world = Links()
    world.tls = pump_tls(authorities)
    first = world.leader(0)
    world.tls = pump_tls(authorities, strangers(authorities, "n1")[who])
    second = world.leader(1)
    world.see(first, second)
    second.links.dial(0)
    refused = world.until(lambda: [fields for name, fields in first.events if name == "connection.refused"])
    assert "rumq://c1/node/n1" in refused[0]["why"] and not first.made and not second.made
    world.end()


def test_certificates_of_the_version_before_are_taken_where_a_setting_says_so(
    world: World, authorities: Authorities
) -> None:
    """They have no names. One node is new, the other one old: in both directions, for the time of an upgrade."""
    accepts = pump_tls(authorities, unnamed=True)
    world.edge.relays._ways._dialer._tls = accepts
    world.tls = pump_tls(authorities, "server", unnamed=True)
    relayed(world)[0].close()
    world.edge.relays._ways._dialer._tls = pump_tls(authorities, "server2", unnamed=True)
    world.tls = accepts
    relayed(world)[0].close()


def test_links_of_the_bus_go_through_it(authorities: Authorities) -> None:
    world = Links()
    world.tls = pump_tls(authorities)
    first, second = world.leader(0), world.leader(1)
    world.see(first, second)
    second.links.dial(0)
    world.until(lambda: second.made and first.made)
    first.made[1].write(BIG)
    second.made[0].write(BIG)
    world.until(lambda: first.got(1) == BIG and second.got(0) == BIG)
    assert not [
        each for each in second.site.pump.connections.values() if not each.link.is_bus and each is not second.made[0]
    ]
    new = world.leader(0, 2)
    world.see(new, second)
    world.until(lambda: second.left == [0] and 0 in second.made and new.made)
    world.end()
