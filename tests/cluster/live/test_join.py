"""The data directory of a broker alone becomes the first node of a cluster: all of it is served by every node."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.cluster.live.checker import copy_of, settled_copies
from tests.cluster.live.cluster import LiveCluster, signal_all
from tests.cluster.live.test_live import pytestmark as needs_etcd
from tests.conformance import wire
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Prop

pytestmark = needs_etcd
LASTING = [(Prop.SESSION_EXPIRY, 3600)]
CLIENTS = [f"device-{number}" for number in range(9)]  # some live in each of three shards
WAITING = [b"first", b"second"]
OPEN = "half-way"  # its QoS 2 exchange is open when the broker stops
SECONDS_MAX = 60.0


def fill(address: Address) -> None:
    """Lasting sessions with messages that wait, retained messages, an exchange of QoS 2 that is half done."""
    for client_id in CLIENTS:
        with Peer(address) as peer:
            peer.connect(client_id, clean=False, properties=LASTING)
            peer.subscribe(f"t/{client_id}", qos=2)
    with Peer(address) as peer:
        peer.connect("publisher")
        for client_id in CLIENTS:
            for payload in WAITING:
                peer.publish(f"t/{client_id}", payload, qos=2)
            peer.publish(f"state/{client_id}", client_id.encode(), qos=1, retain=True)
    with Peer(address) as peer:
        peer.connect(OPEN, clean=False, properties=LASTING)
        peer.send(wire.publish("t/half", b"half", qos=2, packet_id=7))
        assert peer.expect(Kind.PUBREC).packet_id == 7


def check(live: LiveCluster, addresses: list[Address], client_ids: list[str]) -> None:
    """Each client finds its session and what waits for it, by turns through each of these nodes."""
    for number, client_id in enumerate(client_ids):
        address = addresses[number % len(addresses)]
        at_last(lambda address=address, client_id=client_id: finds_all(address, client_id))
        at_last(lambda address=address, client_id=client_id: publishes(address, client_id))
    for address in addresses:
        with Peer(address, deadline_s=30) as peer:
            peer.connect("")
            peer.subscribe("state/#", qos=1)
            found = {message.topic: message.payload for message in peer.messages(len(CLIENTS))}
            assert found == {f"state/{each}": each.encode() for each in CLIENTS}


def finds_all(address: Address, client_id: str) -> None:
    with Peer(address, deadline_s=30) as peer:
        assert peer.connect(client_id, clean=False, properties=LASTING).session_present, client_id
        assert [message.payload for message in peer.messages(2)] == WAITING


def publishes(address: Address, client_id: str) -> None:
    with Peer(address, deadline_s=30) as peer:
        peer.connect(client_id, clean=False, properties=LASTING)
        peer.publish("t/new", client_id.encode(), qos=2)


def at_last(act: Callable[[], None]) -> None:
    """As clients do: while leaders change, a connection may end, and is made again."""
    until = time.monotonic() + SECONDS_MAX
    while True:
        try:
            act()
            return
        except (Ended, OSError):
            assert time.monotonic() < until


def wait_until_well(live: LiveCluster) -> None:
    until = time.monotonic() + SECONDS_MAX
    while (ended := rumqd("cluster", "status", "--data", str(live.nodes[0].data))).status:
        assert time.monotonic() < until, ended.out
        time.sleep(0.1)
    assert all(len(record["replicas"]) == 3 for record in live.shard_records().values()), live.shard_records()


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.timeout(150)
def test_a_broker_alone_becomes_the_first_of_three_nodes(tmp_path: Path, shards: int) -> None:
    """With other numbers of shards than the cluster has: the partitions of its streams stay as they are."""
    alone = Rumqd(tmp_path / "n1", "--set", f"shards.count={shards}")
    alone.start()
    try:
        fill(alone.address)
        assert alone.stop() == 0
    finally:
        alone.end()
    before = set(copy_of(tmp_path / "n1").items())
    assert len(before) == len(CLIENTS) * len(WAITING) + 1
    live = LiveCluster(tmp_path)
    try:
        live.start()
        wait_until_well(live)
        with Peer(live.addresses[2], deadline_s=30) as peer:  # the exchange goes on where it was
            assert peer.connect(OPEN, clean=False, properties=LASTING).session_present
            peer.send(wire.publish("t/half", b"half", qos=2, packet_id=7, dup=True))
            assert peer.expect(Kind.PUBREC).packet_id == 7
            peer.send(wire.ack(Kind.PUBREL, 7))
            peer.expect(Kind.PUBCOMP)
        check(live, live.addresses[1:], CLIENTS[:6])
        copies = settled_copies({node.name: node.data for node in live.nodes}, 20.0)
        assert copies["n1"] == copies["n2"] == copies["n3"] and before <= set(copies["n2"].items())
        assert sum(found.payload == b"half" for found in copies["n2"].values()) == 1
        partitions = {node.name: sorted(path.name for path in node.data.glob("main/g1/p*")) for node in live.nodes}
        assert list(partitions.values()) == [[f"p{number}" for number in range(shards)]] * 3
        assert {(node.data / "SHARDS").read_text() for node in live.nodes} == {"3 1\n"}
        live.cluster.held.add("n1")
        signal_all([live.nodes[0].pid], 9)
        shutil.rmtree(tmp_path / "n1", ignore_errors=True)
        check(live, live.addresses[1:], CLIENTS[6:])
    finally:
        live.stop()
