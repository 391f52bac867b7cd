"""Disks that went back in time, and nodes that are gone: told, repaired, and never answered by a loss. Some minutes."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.cluster import Member
from rumq.mqtt.reasons import Reason
from tests.cluster.live.cluster import LiveCluster, signal_all
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind

RISE_SECONDS = 14.0  # in which a disk's stamp rises

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCluster]:
    cluster = LiveCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def kill(live: LiveCluster, node: Member) -> None:
    """It stays dead."""
    live.cluster.held.add(node.name)
    signal_all([node.pid], 9)
    while node.is_alive:
        time.sleep(0.05)


def times(node: Member, event: str) -> int:
    return node.logs.read_text().count(f'"{event}"')


def publish(live: LiveCluster, numbers: range) -> None:
    for number in numbers:
        with Peer(live.addresses[1], deadline_s=15) as peer:
            assert not peer.connect(f"x{number}").code
            peer.publish(f"t/{number % 7}", b"%d" % number, qos=1)


def test_a_disk_that_was_restored_from_an_old_copy_is_noticed_and_repaired(live: LiveCluster, tmp_path: Path) -> None:
    node, copy = live.nodes[0], tmp_path / "copy"
    publish(live, range(10))
    kill(live, node)
    shutil.copytree(node.data, copy, ignore=lambda _, names: [name for name in names if name.endswith(".sock")])
    live.cluster.held.discard(node.name)
    time.sleep(RISE_SECONDS)
    publish(live, range(10, 30))
    kill(live, node)
    shutil.rmtree(node.data)
    shutil.copytree(copy, node.data)
    live.cluster.held.discard(node.name)
    until = time.monotonic() + 30
    while time.monotonic() < until and node.logs.read_text().count("cluster.copy_doubted") < 3:
        time.sleep(0.1)
    told = node.logs.read_text()
    assert told.count("cluster.disk_restored") == 1 and told.count("cluster.copy_doubted") == 3
    publish(live, range(30, 40))
    assert live.all_serve(5.0) == []


def test_two_nodes_that_get_their_volumes_back_lead_again_with_everything(live: LiveCluster, tmp_path: Path) -> None:
    """They started without, and noted that: nobody led, nothing was cut. Now nothing has to be chosen."""
    publish(live, range(30))
    time.sleep(2.0)  # a note of what is held is a second old at most
    nodes = live.nodes[1:]
    for node in nodes:
        kill(live, node)
    for node in nodes:
        for each in [each for each in Path(node.data).iterdir() if each.is_dir() and each.name != "_cluster"]:
            (tmp_path / "away" / node.name).mkdir(parents=True, exist_ok=True)
            each.rename(tmp_path / "away" / node.name / each.name)
        live.cluster.held.discard(node.name)
    until = time.monotonic() + 60
    while time.monotonic() < until and not all(times(node, "cluster.copy_doubted") >= 3 for node in nodes):
        time.sleep(0.2)
    while time.monotonic() < until and not times(live.nodes[0], "cluster.copies_disagree"):
        time.sleep(0.2)
    assert times(live.nodes[0], "cluster.copies_disagree")
    for node in nodes:
        assert times(node, "cluster.copy_doubted") >= 3
        kill(live, node)
    for node in nodes:
        for each in (tmp_path / "away" / node.name).iterdir():
            shutil.rmtree(Path(node.data) / each.name, ignore_errors=True)
            each.rename(Path(node.data) / each.name)
        live.cluster.held.discard(node.name)
    until = time.monotonic() + 60
    while live.all_serve(5.0) and time.monotonic() < until:
        time.sleep(0.2)
    assert live.all_serve(5.0) == []
    for node in nodes:
        assert times(node, "cluster.copy_whole") >= 2  # the shard that n1 leads was filled again at one of them
    with Peer(live.addresses[2], deadline_s=20) as peer:
        peer.connect("reader")
        peer.subscribe("$log/earliest/t/#", qos=1)
        assert {int(payload) for payload in peer.payloads(30)} == set(range(30))


def test_below_a_majority_nothing_is_acknowledged_and_the_wait_has_an_end(live: LiveCluster) -> None:
    shard = next(n for n, each in live.shard_records().items() if each["leader"].startswith("n1#"))
    publish(live, range(1))
    for node in live.nodes[1:]:
        kill(live, node)
    for number in range(40):  # of a client that lives at the survivor
        with Peer(live.addresses[0], deadline_s=30) as peer:
            if peer.connect(f"y{number}").code:
                continue
            for partition in range(12):
                peer.send(wire.publish(f"t/{shard}/{partition}", b"lost to nobody", 1, partition + 1))
            packet = peer.receive(25)
            assert (packet.kind, packet.code) == (Kind.DISCONNECT, Reason.SERVER_BUSY)
            break
    else:
        raise AssertionError("the survivor serves nobody")
    told = live.nodes[0].logs.read_text()
    assert "cluster.quorum_lost" in told and "cluster.waits_ended" in told
