"""Consumer groups on three nodes, with a client of others, while the node that coordinates them is killed, paused and
moved: what was answered is never told otherwise, and every record comes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from examples.cluster import Member
from rumq.kafka.protocol.errors import ErrorCode
from tests.broker_process import Address
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, address_of, maybe_shard_pid, pause, signal_all
from tests.kafka.published import publish_all
from tests.kafka.wire_client import WireClient
from tests.tries import tries

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_client = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
pytest.importorskip("crc32c", reason="crc32c is not installed (pip install 'rumq[kafka]')")

GROUP, RECORDS = "watchers", 60
SECONDS = 60.0  # for what takes some on a machine that does nothing else
PLACES = dict[int, int]  # partition -> offset

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    found = LiveCluster(tmp_path_factory.mktemp("kafka"), settings=["kafka.port=-1", "kafka.host=127.0.0.1"])
    found.start()
    yield found
    found.stop()


def port_of(node: Member) -> int:
    """Of its Kafka server, by its events: the last one that was opened."""
    for _ in tries(SECONDS):
        lines = node.logs.read_text().splitlines()
        bound = [json.loads(each) for each in lines if '"listener.bound"' in each and '"kafka"' in each]
        if bound:
            return int(bound[-1]["port"])
    raise AssertionError(node.last_words())


def coordinator_of(live: LiveCluster) -> Member:
    """Which all living nodes name, and which answers."""
    nodes = [each for each in live.nodes if each.is_alive and each.name not in live.cluster.held]
    said: list[Any] = []
    for _ in tries(SECONDS):
        said = [(node, rumqd("ask", "kafka_groups", "--data", str(node.data))) for node in nodes]
        here = [node for node, told in said if told.status == 0]
        if len(here) == 1 and all(
            node is here[0] or f"node {here[0].name} coordinates consumer groups: ask there" in told.err
            for node, told in said
        ):
            return here[0]
    raise AssertionError(said)


def publish(live: LiveCluster, first: int) -> None:
    node = next(each for each in live.nodes if each.is_alive and each.name not in live.cluster.held)
    messages: list[Any] = [(f"plant/{n}", b"%d" % n, {}) for n in range(first, first + RECORDS)]
    publish_all(Address(*address_of(node)), messages)


class Reader:
    """A consumer that commits each record before the next. found: payloads of plant/; answered: what was committed"""

    def __init__(self, *nodes: Member) -> None:
        self.found: list[int] = []
        self.answered: PLACES = {}
        self.consumer = kafka.Consumer({
            "bootstrap.servers": ",".join(f"127.0.0.1:{port_of(each)}" for each in nodes), "group.id": GROUP,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6000,
            "log_level": 0,
        })  # fmt: skip
        self.consumer.subscribe(["main"])

    def read(self, wanted: int) -> None:
        """Until so many different records have come."""
        for _ in tries(SECONDS):
            message = self.consumer.poll(0.5)
            if message is not None and not message.error():
                self._take(message)
            if len(set(self.found)) >= wanted:
                return
        raise AssertionError(f"{len(set(self.found))} of {wanted}")

    def _take(self, message: Any) -> None:
        if message.key().startswith(b"plant/"):
            self.found.append(int(message.value()))
        try:
            self.consumer.commit(message=message, asynchronous=False)
        except kafka.KafkaException:
            return  # it is not answered: the group moves
        known = self.answered.get(message.partition(), 0)
        self.answered[message.partition()] = max(known, message.offset() + 1)


def committed(live: LiveCluster, *nodes: Member) -> PLACES:
    """What a consumer that was given these nodes is told."""
    address = ",".join(f"127.0.0.1:{port_of(each)}" for each in nodes)
    asking = kafka.Consumer({"bootstrap.servers": address, "group.id": GROUP, "log_level": 0})
    wanted = [kafka.TopicPartition("main", number) for number in range(live.cluster.shards)]
    try:
        for _ in tries(SECONDS):
            try:
                told = asking.committed(wanted, timeout=5)
            except kafka.KafkaException:
                continue
            return {each.partition: each.offset for each in told if each.offset >= 0}
        raise AssertionError("nobody says what is committed")
    finally:
        asking.close()


def check_committed(live: LiveCluster, reader: Reader, *nodes: Member) -> None:
    """Nothing that was answered goes back. More may be there: a commit whose answer was lost."""
    told = committed(live, *nodes)
    known = reader.answered
    assert all(told.get(partition, 0) >= offset for partition, offset in known.items()), (told, known)


def own_copy(node: Member, partition: int) -> tuple[int, int]:
    """What a node tells of its own copy: (end, error of an offset far behind it)"""
    client = WireClient(port_of(node))
    try:
        end = client.fetch("main", 0, partition=partition)["high_watermark"]
        return int(end), int(client.fetch("main", end + 1000, partition=partition)["error_code"])
    finally:
        client.close()


def test_groups_go_on_when_their_coordinator_is_killed_paused_and_moved(live: LiveCluster) -> None:
    first = coordinator_of(live)
    others = [each for each in live.nodes if each is not first]
    publish(live, 0)

    # One address is enough: the others are told, and the coordinator is another node.
    admin = admin_client.AdminClient({"bootstrap.servers": f"127.0.0.1:{port_of(others[0])}", "log_level": 0})
    for _ in tries(SECONDS):
        told = admin.list_topics(timeout=10)
        if len(told.brokers) == len(live.nodes):
            break
    assert {each.port for each in told.brokers.values()} == {port_of(each) for each in live.nodes}
    reader = Reader(others[0])
    reader.read(RECORDS)
    assert reader.answered and committed(live, others[1]) == reader.answered

    # Every node reads its own copy, and one that is behind says so.
    for partition in range(live.cluster.shards):
        for _ in tries(SECONDS):
            copies = {own_copy(node, partition) for node in live.nodes}
            if len(copies) == 1:
                break
        [(_, error)] = copies
        assert error == ErrorCode.OFFSET_NOT_AVAILABLE

    # kill -9 of the whole node.
    live.cluster.held.add(first.name)
    signal_all(pause(first), signal.SIGKILL)
    check_committed(live, reader, *others)
    publish(live, RECORDS)
    reader.read(2 * RECORDS)
    check_committed(live, reader, *others)
    second = coordinator_of(live)
    lag = json.loads(rumqd("ask", "kafka_lag", "--group", GROUP, "--json", "--data", str(second.data)).out)
    assert sum(each["lag"] or 0 for each in lag["partitions"]) == 0, lag
    live.cluster.held.discard(first.name)
    for number in range(len(live.nodes)):
        assert any(live.cluster.serves(number, 0) for _ in tries(SECONDS))

    # kill -9 of the shard's process alone: the Kafka server beside it lives on.
    pid = maybe_shard_pid(coordinator_of(live), 0)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    publish(live, 2 * RECORDS)
    reader.read(3 * RECORDS)
    check_committed(live, reader, *live.nodes)

    # A planned move.
    moved_from = coordinator_of(live)
    to = next(each for each in live.nodes if each is not moved_from)
    assert rumqd("cluster", "move", "0", "--to", to.name, "--data", str(to.data)).status == 0
    publish(live, 3 * RECORDS)
    reader.read(4 * RECORDS)
    check_committed(live, reader, *live.nodes)

    # A pause: who wakes up as a coordinator that has a successor tells nothing old.
    paused = coordinator_of(live)
    awake = [each for each in live.nodes if each is not paused]
    old = WireClient(port_of(paused))
    asked = {"groups": [{"group_id": GROUP, "topics": [{"name": "main", "partition_indexes": [0, 1, 2]}]}]}
    stopped = pause(paused)
    try:
        live.cluster.held.add(paused.name)
        publish(live, 4 * RECORDS)
        reader.read(5 * RECORDS)
        old.send("OffsetFetch", 9, asked)
    finally:
        signal_all(stopped, signal.SIGCONT)
    live.cluster.held.discard(paused.name)
    [group] = old.answer("OffsetFetch", 9)["groups"]
    if not group["error_code"]:
        found = {each["partition_index"]: each["committed_offset"] for each in group["topics"][0]["partitions"]}
        assert all(found[number] >= offset for number, offset in reader.answered.items()), (found, reader.answered)
    check_committed(live, reader, *awake)
    reader.consumer.close()
    assert sorted(set(reader.found)) == list(range(5 * RECORDS)), "every record came"
