"""gRPC at every node of a cluster: ids are one for all nodes, records are read anywhere, leaders may be killed.

Three nodes, three etcd, on loopback. Some 40 s. GOR-1 to 3, GOR-5 of docs/explanation/promises.md."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from examples.cluster import Member
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, address_of
from tests.cluster.live.gaps import gap_of, quantile
from tests.conformance.peer import Peer
from tests.services.conftest import EARLIEST, LATEST, message
from tests.services.generated_client import pb, queue_stubs, stubs
from tests.services.generated_client import queues_pb as qb

SECONDS = 40.0
STREAM_SECONDS = 15.0
KILLS = int(os.environ.get("RUMQ_CALL_KILLS", "3"))

pytestmark = [
    pytest.mark.timeout(300 + KILLS * int(SECONDS)),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


def port_of(node: Member) -> int:
    """Of its gRPC server, by its events; 0 before it listens."""
    bound = [
        json.loads(line)["port"]
        for line in node.logs.read_text().splitlines()
        if '"listener.bound"' in line and '"protocol":"grpc"' in line
    ]
    return int(bound[-1]) if bound else 0


def stub_of(node: Member) -> Any:
    return stubs.BrokerServiceStub(channel_of(node))


def channel_of(node: Member) -> Any:
    until = time.monotonic() + SECONDS
    while not (port := port_of(node)):
        assert time.monotonic() < until, node.last_words()
        time.sleep(0.1)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 500)]
    return grpc.insecure_channel(f"127.0.0.1:{port}", options)


def published(stub: Any, topic: str, payload: bytes) -> int:
    """The id, tried until there is one: what may have been published and what was not is seen in the log."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            request = pb.PublishRequest(message=message(topic, payload))
            return int(stub.Publish(request, timeout=10, wait_for_ready=True).id)
        except grpc.RpcError:
            assert time.monotonic() < until
            time.sleep(0.2)


def stored(stub: Any, topic: str, count: int, again: Callable[[], Any] | None = None) -> list[Any]:
    """At least so many records from the first one on. again: the stub of a node that was killed, at its next port"""
    found: list[Any] = []
    seen = ""
    until = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < until, f"{seen} of {count}"
        try:
            start = pb.Start(position=EARLIEST)
            for answer in stub.Subscribe(pb.SubscribeRequest(topics={topic: start}), timeout=15):
                assert not answer.lost
                found += answer.records
                if len(found) >= count:
                    break
        except grpc.RpcError as fault:
            seen, found = f"{len(found)} before {fault.code()}: {fault.details()}", []
            if again is not None:
                time.sleep(0.2)
                stub = again()
    return found


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    tokens = folder / "tokens"
    ended = rumqd("token", "add", "ops", "--role", "administer", "--role", "read", "--file", str(tokens))
    assert ended.status == 0, ended.err
    (folder / "secret").write_text(next(word for word in ended.out.split() if word.startswith("rumq_")))
    settings = ["grpc.port=-1", "grpc.host=127.0.0.1", f"gateway.tokens_file={tokens}", "queues.enabled=true"]
    made = LiveCluster(folder / "data", settings=settings)
    made.secret = (folder / "secret").read_text()  # type: ignore[attr-defined]
    try:
        made.start()
        yield made
    finally:
        made.stop()
        made.remove()


def test_ids_are_one_for_all_nodes(live: LiveCluster) -> None:
    """Published through each node in turns, read at each: no id twice, none skipped, the same record everywhere."""
    nodes = [stub_of(node) for node in live.nodes]
    ids = [published(nodes[n % 3], "one", b"%d" % n) for n in range(30)]
    assert sorted(filter(None, ids)) == sorted(set(filter(None, ids)))
    records = stored(nodes[0], "one", 30)
    assert [each.id for each in records] == list(range(1, len(records) + 1))
    contents = {each.id: each.payload for each in records}
    for number, each in enumerate(ids):
        assert not each or contents[each] == b"%d" % number
    assert len(list(filter(None, ids))) >= 20, "most are told"
    for node in nodes[1:]:
        assert [(each.id, each.payload, each.lsn) for each in stored(node, "one", len(records))] == [
            (each.id, each.payload, each.lsn) for each in records
        ]
        found = node.Fetch(pb.FetchRequest(topic="one", id=7), timeout=SECONDS).record
        assert found.payload == contents[7]


def test_live_records_come_at_every_node(live: LiveCluster) -> None:
    nodes = [stub_of(node) for node in live.nodes]
    calls = [
        node.Subscribe(pb.SubscribeRequest(topics={"live/#": pb.Start(position=LATEST)}), timeout=SECONDS)
        for node in nodes
    ]
    for call in calls:
        call.initial_metadata()
    for number, node in enumerate(nodes):
        published(node, f"live/{number}", b"x")
    for call in calls:
        seen: set[str] = set()
        for answer in call:
            seen |= {each.topic for each in answer.records}
            if len(seen) == 3:
                break
        call.cancel()


def test_a_broadcast_reaches_subscribers_at_every_node(live: LiveCluster) -> None:
    peers = []
    for number, node in enumerate(live.nodes):
        for each in range(2):
            peer = Peer(address_of(node), version=5)
            peer.connect(client_id=f"bc-{number}-{each}")
            peer.subscribe("notice")
            peers.append(peer)
    metadata = [("authorization", f"Bearer {live.secret}")]  # type: ignore[attr-defined]
    request = pb.BroadcastRequest(clients="bc-*", message=message("notice", b"soon"))
    answer = stub_of(live.nodes[1]).Broadcast(request, metadata=metadata, timeout=SECONDS)
    assert (answer.named, answer.sent, answer.dropped) == (6, 6, 0)
    for peer in peers:
        found = peer.message()
        assert (found.topic, found.payload) == ("notice", b"soon")
        peer.close()


def queues_of(node: Member) -> Any:
    """A stub whose calls wait for the server, and for queues that begin."""
    return queue_stubs.QueuesStub(channel_of(node))


def asked(stub: Any, name: str, **fields: Any) -> Any:
    """The answer, tried while queues of a node begin."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            request = getattr(qb, f"{name}Request")(**fields)
            return getattr(stub, name)(request, timeout=20, wait_for_ready=True)
        except grpc.RpcError as fault:
            if fault.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:  # type: ignore[attr-defined]
                raise
            time.sleep(0.2)


def taken(call: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += next(call).messages
    return found


def test_a_queue_is_one_for_all_nodes(live: LiveCluster) -> None:
    """Defined at one node, pushed through each, consumed at another: one numbering, each message once."""
    nodes = [queues_of(node) for node in live.nodes]
    assert asked(nodes[0], "CreateQueue", queue="Jobs").queue.label == "jobs"
    channel = asked(nodes[1], "CreateChannel", queue="jobs", id="workers").channel.id
    for number in range(30):
        message = qb.PushMessage(payload=b"%d" % number)
        asked(nodes[number % 3], "PushToQueue", queue="JOBS", messages=[message])
    call = nodes[2].SubscribeToChannel(qb.SubscribeToChannelRequest(channel=channel), timeout=SECONDS)
    name = next(call).consumer
    found = taken(call, 30)
    assert sorted(each.number for each in found) == list(range(1, 31))
    contents = {each.id: each.payload for each in found}
    assert sorted(contents.values(), key=int) == [b"%d" % number for number in range(30)]
    answers = qb.Answers(acknowledge=[each.id for each in found])
    assert asked(nodes[2], "Acknowledge", consumer=name, answers=answers).answered.done == 30
    call.cancel()
    for node, stub in zip(live.nodes, nodes, strict=True):
        beat = asked(stub, "GetHeartbeat")
        assert (beat.node, beat.serving, beat.queues) == (node.name, True, 2)
    rebuilt = asked(nodes[1], "RebuildQueue", queue="jobs")
    assert {each.durability for each in rebuilt.partitions} == {"quorum"} and not rebuilt.missing
    assert [each for each in rebuilt.partitions if each.offline] == []


@pytest.mark.long
def test_what_a_killed_node_held_goes_to_a_consumer_elsewhere(live: LiveCluster) -> None:
    """kill -9 of a node with a consumer: what it held, and did not acknowledge, comes at another, with its id."""
    nodes = [queues_of(node) for node in live.nodes]
    asked(nodes[0], "CreateQueue", queue="fragile")
    channel = asked(nodes[0], "CreateChannel", queue="fragile", id="fragile-workers").channel.id
    for number in range(10):
        asked(nodes[0], "PushToQueue", queue="fragile", messages=[qb.PushMessage(payload=b"%d" % number)])
    call = nodes[0].SubscribeToChannel(qb.SubscribeToChannelRequest(channel=channel), timeout=SECONDS)
    name = next(call).consumer
    held = {each.id: each.payload for each in taken(call, 10)}
    done = sorted(held)[:4]
    asked(nodes[0], "Acknowledge", consumer=name, answers=qb.Answers(acknowledge=done))
    other = nodes[1].SubscribeToChannel(qb.SubscribeToChannelRequest(channel=channel), timeout=90)
    next(other)
    os.kill(live.nodes[0].pid, signal.SIGKILL)
    came: dict[str, bytes] = {}
    while not came.keys() >= held.keys() - set(done):
        came |= {each.id: each.payload for each in next(other).messages}
    assert all(held[each] == payload for each, payload in came.items())
    other.cancel()


class Publisher:
    """Publishes through one node, stream after stream, to the topic `kept`; what is not answered may be published.

    answered: id -> payload, of all publishers; answered_at: when there was an answer with ids, monotonic seconds"""

    def __init__(self, live: LiveCluster, number: int, answered: dict[int, bytes], ended: threading.Event) -> None:
        self._live, self._number, self._answered, self._ended = live, number, answered, ended
        self._sent = 0
        self._waiting: list[bytes] = []
        self.answered_at: list[float] = []
        self.faults: list[str] = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _requests(self) -> Iterator[Any]:
        until = time.monotonic() + STREAM_SECONDS
        while time.monotonic() < until and not self._ended.wait(0.02):
            payloads = [b"%d-%d" % (self._number, self._sent + n) for n in range(10)]
            self._waiting += payloads
            self._sent += 10
            yield pb.PublishStreamRequest(messages=[message("kept", each) for each in payloads])

    def _run(self) -> None:
        while not self._ended.is_set():
            self._waiting, at = [], 0
            try:
                stub = stub_of(self._live.nodes[self._number])
                for answer in stub.PublishStream(self._requests(), timeout=SECONDS):
                    for index, each in enumerate(answer.ids):
                        if each and each in self._answered:
                            self.faults.append(f"{each} was given twice")
                        if each:
                            self._answered[each] = self._waiting[at + index]
                    at += len(answer.ids)
                    if any(answer.ids):
                        self.answered_at.append(time.monotonic())
            except grpc.RpcError as fault:
                self.faults += [str(fault)] * ("DEADLINE" in str(fault))
                time.sleep(0.2)


def kill_a_leader(live: LiveCluster, publishers: list[Publisher]) -> float:
    """Once all go on and it is back. returns: the longest time without an answer of the other nodes' publishers, s"""
    leader = live.leaders()[0]
    began = time.monotonic()
    os.kill(leader.pid, signal.SIGKILL)  # the first process of the node: the others die with it
    until = began + SECONDS
    while all(each.is_alive for each in live.nodes):
        assert time.monotonic() < until
        time.sleep(0.01)
    while not all(each.is_alive for each in live.nodes):
        assert time.monotonic() < until, f"{leader.name} is not back"
        time.sleep(0.1)
    back = time.monotonic()
    while late := [str(n) for n, each in enumerate(publishers) if max(each.answered_at, default=0.0) < back]:
        assert time.monotonic() < until, f"no ids for {late} since {leader.name} was killed"
        time.sleep(0.1)
    others = [each for node, each in zip(live.nodes, publishers, strict=True) if node is not leader]
    return max(gap_of(each.answered_at, began, back) for each in others)


def test_killed_leaders_give_no_id_twice_and_lose_none(live: LiveCluster) -> None:
    """A node is killed with what it leads while all three publish; the others go on, and so does it when it is back.

    Prints how long the others' publishers had no answer, their own waits before they try again with it."""
    answered: dict[int, bytes] = {}
    ended = threading.Event()
    publishers = [Publisher(live, number, answered, ended) for number in range(3)]
    for each in publishers:
        each.thread.start()
    time.sleep(2)
    gaps: list[float] = []
    try:
        for _ in range(KILLS):
            gaps.append(kill_a_leader(live, publishers))
        print("gaps", *(f"{each:.3f}" for each in gaps))
        tell = [quantile(gaps, 0.5), quantile(gaps, 0.99), max(gaps)]
        print(f"{len(gaps)} gaps, p50, p99 and worst in s", *(f"{each:.3f}" for each in tell))
    finally:
        ended.set()
        for each in publishers:
            each.thread.join(SECONDS)
    assert [fault for each in publishers for fault in each.faults] == []
    assert len(answered) > 1_500
    records = stored(stub_of(live.nodes[0]), "kept", max(answered), lambda: stub_of(live.nodes[0]))
    assert [each.id for each in records] == list(range(1, len(records) + 1))
    contents = {each.id: each.payload for each in records}
    assert {number: contents.get(number) for number in answered} == answered
