"""A leader that is cut off serves nobody what was replaced elsewhere; one cut link stops nobody.

Network namespaces, with paho and a client of our own. Some 30 s."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest

from commitlog.log.store import partition_of
from rumq.net.client_placement import home_of
from tests.cluster.live.cluster import LiveCluster, etcd_range, maybe_shard_pid
from tests.cluster.live.network import Network
from tests.conformance import wire
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Prop

NODES = 3
SECONDS_MAX = 40.0  # for what takes two or three on a machine that does nothing else
LOST = (Ended, OSError, AssertionError)

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(Network.why_not() != "", reason=Network.why_not()),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCluster]:
    network = Network([f"n{number + 1}" for number in range(NODES)] + [f"etcd{number + 1}" for number in range(3)])
    network.make()
    cluster = LiveCluster(tmp_path, network=network)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        network.remove()


def client_of(shard: int, prefix: str) -> str:
    return next(name for n in range(999) if home_of(name := f"{prefix}{n}", NODES) == shard)


def topic_of(shard: int) -> str:
    return next(name for n in range(999) if partition_of(name := f"plant/{n}", NODES) == shard)


def leader_of(live: LiveCluster, shard: int) -> int:
    """The number of the node."""
    name = live.shard_records()[shard]["leader"].partition("#")[0]
    return next(number for number, node in enumerate(live.nodes) if node.name == name)


def cut(live: LiveCluster, one: str, others: list[str]) -> None:
    assert live.network is not None
    for other in others:
        live.network.cut(one, other)
        live.network.cut(other, one)


def until(try_it: Any) -> Any:
    """What it returns, once that is true and none of LOST is raised."""
    end, last = time.monotonic() + SECONDS_MAX, None
    while time.monotonic() < end:
        try:
            if found := try_it():
                return found
        except LOST as fault:
            last = fault
        time.sleep(0.05)
    raise AssertionError(f"it never came: {last!r}")


def publish(address: Address, name: str, topic: str, payload: bytes, *, retain: bool = False) -> bool:
    with Peer(address, 5, deadline_s=5) as peer:
        if peer.connect(name).code:
            return False
        peer.publish(topic, payload, qos=1, retain=retain)
    return True


class PahoSubscriber:
    """told: the reason code and the Server Reference of the DISCONNECT that it got"""

    def __init__(self, address: Address, name: str, topic: str) -> None:
        self.got: list[bytes] = []
        self.told: tuple[int, str] | None = None
        self.has_ended, self._is_subscribed = threading.Event(), threading.Event()
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=name, protocol=paho.MQTTv5, reconnect_on_failure=False
        )
        self._client.on_connect = lambda *_: self._client.subscribe(topic, qos=1)
        self._client.on_subscribe = lambda *_: self._is_subscribed.set()
        self._client.on_message = lambda _, __, message: self.got.append(message.payload)
        self._client.on_disconnect = self._ended
        self._client.connect(*address)
        self._client.loop_start()
        assert self._is_subscribed.wait(SECONDS_MAX)

    def _ended(self, _: Any, __: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.told = (
            (reason.value, getattr(properties, "ServerReference", ""))
            if flags.is_disconnect_packet_from_server
            else (0, "")
        )
        self.has_ended.set()

    def close(self) -> None:
        self._client.loop_stop()


def read(address: Address, name: str, topic: str) -> tuple[int, bytes, str]:
    """Reason code of CONNACK; the retained message that a new client gets; or the Server Reference."""
    with Peer(address, 5, deadline_s=1.5) as peer:
        connack = peer.connect(name)
        if connack.code:
            return connack.code, b"", "".join(map(str, connack.all(Prop.SERVER_REFERENCE)))
        try:
            peer.subscribe(topic, qos=1)
            return 0, peer.message(1.0).payload, ""
        except LOST:
            return 0, b"", ""


def test_a_leader_that_is_cut_off_shows_nothing_old_and_sends_its_clients_away(live: LiveCluster) -> None:
    topic, isolated = topic_of(0), leader_of(live, 0)
    here, elsewhere = live.addresses[isolated], live.addresses[(isolated + 1) % NODES]
    until(lambda: publish(here, client_of(0, "before"), topic, b"old", retain=True))
    subscriber = PahoSubscriber(here, client_of(0, "paho"), topic)
    assert read(here, client_of(0, "r"), topic) == (0, b"old", "")
    name = live.nodes[isolated].name
    cut(live, name, [member.name for member in live.cluster.members if member.name != name])

    for number in range(5):
        until(
            lambda number=number: publish(
                elsewhere, client_of(0, "after"), topic, f"new {number}".encode(), retain=True
            )
        )
    seen = [until(lambda n=n: [read(here, client_of(0, f"r{n}-"), topic)])[0] for n in range(3)]
    assert all(payload == b"" for _, payload, _ in seen), "what five newer messages have replaced"
    code, _, reference = until(lambda: (found := read(here, client_of(0, "late"), topic))[0] and found)
    others = [":".join(map(str, address)) for address in live.addresses if address != here]
    assert code == 0x9C and reference in others
    assert subscriber.has_ended.wait(SECONDS_MAX)
    assert subscriber.told is not None and subscriber.told[0] == 0x9C and subscriber.told[1] in others
    assert subscriber.got == [b"old"]
    subscriber.close()

    assert live.network is not None
    live.network.heal()
    assert until(lambda: read(here, client_of(0, "healed"), topic)[1]) == b"new 4"


def test_a_leader_that_wakes_up_answers_nothing_from_before_its_sleep(live: LiveCluster) -> None:
    """A SUBSCRIBE came while it was stopped, after newer messages were acknowledged elsewhere. It wakes up cut off, so
    that nothing but its clock can tell it."""
    topic, asleep = topic_of(0), leader_of(live, 0)
    elsewhere = live.addresses[(asleep + 1) % NODES]
    until(lambda: publish(elsewhere, client_of(0, "before"), topic, b"old", retain=True))
    pid = maybe_shard_pid(live.nodes[asleep], 0)
    assert pid is not None
    here = live.addresses[asleep]
    with Peer(here, 5, deadline_s=5) as peer, Peer(here, 5, deadline_s=5) as other:
        assert not peer.connect(client_of(0, "early")).code
        assert not other.connect(client_of(0, "other")).code
        other.subscribe(topic, qos=1)  # so that no other shard needs to be asked
        os.kill(pid, signal.SIGSTOP)
        name = live.nodes[asleep].name
        cut(live, name, [member.name for member in live.cluster.members if member.name != name])
        try:
            until(lambda: publish(elsewhere, client_of(0, "after"), topic, b"new", retain=True))
            peer.send(wire.subscribe(1, [(topic, 1)]))
        finally:
            os.kill(pid, signal.SIGCONT)
        try:
            while True:
                packet = peer.receive(2.0)
                assert packet.kind != Kind.PUBLISH, packet
        except (Ended, OSError):
            pass
    assert live.network is not None
    live.network.heal()
    assert until(lambda: read(live.addresses[asleep], client_of(0, "late"), topic)[1]) == b"new"


def test_one_cut_link_between_leaders_stops_nobody_for_long(live: LiveCluster) -> None:
    one, other = leader_of(live, 0), leader_of(live, 1)
    if one == other:
        pytest.skip("one node leads both shards: there is no link to cut")
    cut(live, live.nodes[one].name, [live.nodes[other].name])
    began = time.monotonic()
    for node in range(NODES):
        for home, where in ((0, 1), (1, 0)):
            name = client_of(home, f"p{node}{where}-")
            until(lambda node=node, name=name, where=where: publish(live.addresses[node], name, topic_of(where), b"on"))
    assert time.monotonic() - began < SECONDS_MAX / 2
    assert [leader_of(live, 0), leader_of(live, 1)] == [one, other], "nobody had to move"

    assert live.network is not None
    live.network.heal()


def test_a_leader_that_etcd_alone_cannot_see_is_found_by_the_others(live: LiveCluster) -> None:
    unseen = leader_of(live, 0)
    name = live.nodes[unseen].name
    cut(live, name, [member.name for member in live.cluster.etcds])
    until(lambda: not is_alive(live, name))
    for node in range(NODES):
        until(lambda node=node: publish(live.addresses[node], client_of(0, f"c{node}-"), topic_of(0), b"on"))
    assert leader_of(live, 0) == unseen


def is_alive(live: LiveCluster, name: str) -> bool:
    """Whether etcd has a record of the node."""
    return any(key.endswith(b"/" + name.encode()) for key, _ in etcd_range(live.cluster.etcds, b"/rumq/demo/node/"))
