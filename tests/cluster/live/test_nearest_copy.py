"""A replay comes from the copy at the client's own node, equal at every node, also when the leader dies meanwhile.

Three nodes and three etcd; mosquitto_pub writes, paho and mosquitto_sub replay. Some 40 s."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from paho.mqtt.client import Client, MQTTMessage, SubscribeOptions  # type: ignore[attr-defined]
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.properties import Properties

from bench.cluster.replays import sent_between
from examples.cluster import Member
from rumq.net.client_placement import home_of
from tests.cluster.live.cluster import LiveCluster, address_of, signal_all

RECORDS, MORE = 20_000, 50
TOPIC = "plant/7/temp"
SECONDS_MAX = 60.0

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
    pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto-clients is not installed"),
]


class Got(NamedTuple):
    partition: str
    lsn: int
    payload: bytes


class Replay:
    """A client that replays the topic. got: so far; reached: called with how many there are, on the client's thread"""

    def __init__(self, node: Member, client_id: str, reached: Callable[[int], None] = lambda count: None) -> None:
        self.got: list[Got] = []
        self.is_lost = False
        self._reached = reached
        self._client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = self._message
        self._client.on_disconnect = self._lost
        self._client.connect(*address_of(node), clean_start=True)
        self._client.loop_start()
        self._client.subscribe(f"$log/earliest/{TOPIC}", options=SubscribeOptions(qos=1))

    def _message(self, client: object, data: object, message: MQTTMessage) -> None:
        properties: Properties | None = message.properties
        told = dict(getattr(properties, "UserProperty", []))
        self.got.append(Got(told["rumq-partition"], int(told["rumq-lsn"]), message.payload))
        self._reached(len(self.got))

    def _lost(self, *_: Any) -> None:
        self.is_lost = True

    def wait(self, count: int) -> list[Got]:
        until(lambda: len(self.got) >= count, lambda: (len(self.got), count, self.is_lost))
        return self.got

    def end(self) -> None:
        self._client.on_disconnect = None
        self._client.disconnect()
        self._client.loop_stop()


def until(is_so: Callable[[], Any], what: Callable[[], object]) -> Any:
    end = time.monotonic() + SECONDS_MAX
    while not (found := is_so()):
        assert time.monotonic() < end, what()
        time.sleep(0.05)
    return found


def publish(node: Member, first: int, count: int) -> None:
    """Of `count` numbers, one after the other, at QoS 1."""
    host, port = address_of(node)
    command = ["mosquitto_pub", "-h", host, "-p", str(port), "-t", TOPIC, "-q", "1", "-l"]
    lines = "".join(f"{number:06}{'x' * 94}\n" for number in range(first, first + count))
    subprocess.run(command, input=lines.encode(), check=True, timeout=SECONDS_MAX)


def payloads(count: int) -> list[bytes]:
    return [f"{number:06}{'x' * 94}".encode() for number in range(count)]


def client_of(shard: int, name: str) -> str:
    return next(f"{name}{n}" for n in range(1000) if home_of(f"{name}{n}", 3) == shard)


class World(NamedTuple):
    """at: of each node a shard that it leads; leader: of the topic's partition"""

    live: LiveCluster
    at: dict[str, int]
    leader: Member


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    live = LiveCluster(tmp_path_factory.mktemp("nearest") / "cluster")
    live.start()

    def led() -> dict[str, int]:
        return {record["leader"].partition("#")[0]: shard for shard, record in live.shard_records().items()}

    def is_led_by(shard: int, node: Member) -> bool:
        """Once it is; ordered if it is not."""
        if live.shard_records()[shard]["leader"].startswith(f"{node.name}#"):
            return True
        words = ["cluster", "move", str(shard), "--to", node.name, "--data", str(node.data)]
        subprocess.run([sys.executable, "-m", "rumq", *words], capture_output=True, timeout=30, check=False)
        return False

    for shard, node in enumerate(live.nodes):  # a shard each
        until(partial(is_led_by, shard, node), live.shard_records)
    until(lambda: not live.all_serve(2.0), live.shard_records)
    leader = live.nodes[crc32(TOPIC.encode()) % 3]
    assert led()[leader.name] == live.nodes.index(leader)
    publish(live.nodes[0], 0, RECORDS)
    yield World(live, led(), leader)
    live.stop()


def test_a_replay_is_equal_at_every_node_and_its_bytes_stay_at_the_node(world: World) -> None:
    seen = []
    for node in world.live.nodes:
        before = sent_between(world.live)  # type: ignore[arg-type]
        replay = Replay(node, client_of(world.at[node.name], "replay"))
        seen.append(list(replay.wait(RECORDS)))
        between = sent_between(world.live) - before  # type: ignore[arg-type]
        replay.end()
        assert between < 100 * RECORDS // 4, f"{node.name}: {between} bytes between nodes"
    assert [got.payload for got in seen[0]] == payloads(RECORDS)
    assert seen[0] == seen[1] == seen[2]
    for node in world.live.nodes:
        host, port = address_of(node)
        command = ["mosquitto_sub", "-h", host, "-p", str(port), "-t", f"$log/earliest/{TOPIC}", "-q", "1"]
        said = subprocess.run([*command, "-C", str(RECORDS)], capture_output=True, timeout=SECONDS_MAX, check=True)
        assert said.stdout.split() == payloads(RECORDS)


def test_the_leader_dies_during_a_replay_and_every_lsn_comes_once(world: World) -> None:
    live, leader = world.live, world.leader
    node = next(each for each in live.nodes if each is not leader)
    third = next(each for each in live.nodes if each not in (leader, node))
    killed = threading.Event()

    def reached(count: int) -> None:
        if count == RECORDS // 4:
            live.cluster.held.add(leader.name)
            signal_all([leader.pid], 9)
            killed.set()

    replay = Replay(node, client_of(world.at[node.name], "survivor"), reached)
    replay.wait(RECORDS)
    assert killed.is_set()
    publish(third, RECORDS, MORE)
    got = replay.wait(RECORDS + MORE)
    replay.end()
    assert [each.payload for each in got] == payloads(RECORDS + MORE)
    lsns = [each.lsn for each in got]
    assert lsns == sorted(set(lsns)) and len({each.partition for each in got}) == 1
    assert not replay.is_lost, "its session is at a node that lives"
