"""Lone messages on a live cluster: each node packs its copies, one dies and comes back, and the copies agree.

Three nodes and three etcd; paho publishes. Some 60 s."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt.client import Client  # type: ignore[attr-defined]
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from commitlog import RealFiles
from commitlog.read.copy_digest import marked_view
from examples.cluster import Member, tree
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, address_of, signal_all
from tests.cluster.live.test_live import pytestmark as needs_etcd
from tests.commitlog.records import Seen, frame, viewed
from tests.tries import tries

pytestmark = needs_etcd
TOPIC = "plant/7/temp"
LONE, MORE = 300, 150
SECONDS_MAX = 90.0
HEADER_BYTES = 4096


def payload(number: int) -> bytes:
    return f"{number:06}{'x' * 200}".encode()


def publish(node: Member, numbers: range) -> None:
    """Each once the one before is acknowledged: it is a group of its own, and a page of each disk."""
    client = Client(CallbackAPIVersion.VERSION2, "lone", protocol=MQTTProtocolVersion.MQTTv5)
    client.connect(*address_of(node))
    client.loop_start()
    for number in numbers:
        client.publish(TOPIC, payload(number), qos=1).wait_for_publish(SECONDS_MAX)
    client.disconnect()
    client.loop_stop()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCluster]:
    live = LiveCluster(tmp_path, settings=("log.scrub_bytes_per_second=67108864",))
    live.start()
    yield live
    live.stop()


def folder_of(live: LiveCluster) -> str:
    """The partition with the topic, as a path below each data directory."""
    sizes = {
        folder.name: sum(path.stat().st_size for path in folder.glob("*.seg"))
        for folder in Path(live.nodes[0].data, "main", "g1").glob("p*")
    }
    return f"main/g1/{max(sizes, key=lambda name: sizes[name])}"


def read(node: Member, key: str) -> list[Seen]:
    """Every record that the node's copy proves to be committed."""
    view = marked_view(RealFiles(), str(node.data), key)
    assert view is not None
    seen, gaps = viewed(view)
    assert gaps == []
    return seen


def finished(node: Member, key: str) -> list[Path]:
    return sorted(Path(node.data, key).glob("*.seg"))[:-1]


def unpacked(live: LiveCluster, key: str) -> list[str]:
    """Finished segments, of any copy, that take more than twice what their records are, besides their header."""
    found = []
    for node in live.nodes:
        seen = read(node, key)
        paths = finished(node, key)
        ends = [int(path.name[:20]) for path in paths[1:]] + [1 << 62]
        for path, end in zip(paths, ends, strict=True):
            own = sum(32 + len(frame(one.topic, one.payload)) for one in seen if int(path.name[:20]) <= one.lsn < end)
            if path.stat().st_size - HEADER_BYTES > 2 * own:
                found.append(f"{node.name}: {path.name} has {path.stat().st_size} bytes, its records {own}")
    return found


def packed_everywhere(live: LiveCluster, key: str, segments_min: int) -> None:
    why: list[str] = []
    for _ in tries(SECONDS_MAX):
        try:
            why = unpacked(live, key)
        except FileNotFoundError:  # replaced just now
            continue
        if not why and all(len(finished(node, key)) >= segments_min for node in live.nodes):
            return
    raise AssertionError(why or [(node.name, len(finished(node, key))) for node in live.nodes])


@pytest.mark.timeout(500)
def test_copies_are_packed_on_every_node_and_agree(live: LiveCluster) -> None:
    publish(live.nodes[0], range(LONE))
    key = folder_of(live)
    packed_everywhere(live, key, 3)
    leader = next(node for node in live.nodes if node in live.leaders())
    killed = next(node for node in live.nodes if node is not live.nodes[0])
    signal_all(tree(killed.pid), signal.SIGKILL)
    publish(live.nodes[0], range(LONE, LONE + MORE))
    for _ in tries(SECONDS_MAX):
        if not live.all_serve(2.0):
            break
    packed_everywhere(live, key, 5)
    verified = rumqd("cluster", "verify", "--data", str(leader.data))
    for _ in tries(SECONDS_MAX):
        if not verified.status:
            break
        verified = rumqd("cluster", "verify", "--data", str(leader.data))
    assert not verified.status, verified.out
    logs = [read(node, key) for node in live.nodes]
    mine = [[one for one in log if one.topic == TOPIC.encode()] for log in logs]
    assert [one.payload for one in mine[0]] == [payload(number) for number in range(LONE + MORE)]
    end = min(len(log) for log in logs)
    assert end > LONE + MORE - 64
    for log in logs[1:]:
        assert log[:end] == logs[0][:end], "the same records at the same lsns and offsets"
    assert live.doubted() == []
    for node in live.nodes:
        assert "cluster.copy_damaged" not in node.last_words()
