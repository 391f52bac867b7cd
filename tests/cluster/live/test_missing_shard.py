"""A shard has no leader for long, and the others get new ones: these serve. Some minutes.

Two nodes come back without the directories of that shard's partitions, so it has no majority of sound copies."""

import os
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commitlog.streams import partition_of
from examples.cluster import Member
from rumq.net.client_placement import home_of
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, signal_all
from tests.conformance import wire
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Kind, Prop

SHARDS, MISSING, HERE = 3, 0, 1
SERVE_SECONDS = 60.0
WAITING_ID = 700

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(400),
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


def client_of(shard: int, name: str) -> str:
    return next(found for n in range(99) if home_of(found := f"{name}{n}", SHARDS) == shard)


def topic_of(shard: int) -> str:
    return next(topic for n in range(99) if partition_of(topic := f"t{n}", SHARDS) == shard)


def kill(live: LiveCluster, nodes: list[Member]) -> None:
    """They stay dead."""
    live.cluster.held |= {node.name for node in nodes}
    signal_all([node.pid for node in nodes], 9)
    while any(node.is_alive for node in nodes):
        time.sleep(0.05)


def of_missing(node: Member) -> list[Path]:
    """The directories of the missing shard's partitions."""
    found = [path for path in Path(node.data).glob("*/g*/p*") if int(path.name[1:]) % SHARDS == MISSING]
    assert found
    return found


def serves(live: LiveCluster, shard: int) -> bool:
    """Whether a client of a shard is taken, and a message to its partition acknowledged."""
    until = time.monotonic() + SERVE_SECONDS
    while time.monotonic() < until:
        try:
            with Peer(live.addresses[0], deadline_s=5) as peer:
                if not peer.connect(client_of(shard, "probe")).code:
                    peer.publish(topic_of(shard), b"probe", qos=1)
                    return True
        except (OSError, AssertionError, Ended):
            time.sleep(0.2)
    return False


def maybe_payload(peer: Peer) -> bytes | None:
    """Of the next message; None once everything has come."""
    try:
        return peer.receive(3.0).payload
    except TimeoutError:
        return None


def test_leaders_that_are_new_serve_while_another_shard_has_none(live: LiveCluster) -> None:
    client_id = client_of(HERE, "device")
    lasting: dict[str, Any] = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 1000)]}
    with Peer(live.addresses[0], deadline_s=20) as peer:
        assert not peer.connect(client_id, **lasting).code
        for shard in range(SHARDS):
            peer.publish(topic_of(shard), b"before", qos=2)
    time.sleep(1.5)  # the journal has a checkpoint
    kill(live, live.nodes)
    for node in live.nodes[1:]:
        for path in of_missing(node):
            path.rename(path.with_name(f"away-{path.name}"))
    live.cluster.held.clear()
    assert serves(live, HERE) and serves(live, 3 - HERE), "they have leaders"
    assert not live.shard_records()[MISSING]["leader"] or not live.cluster.serves(0, MISSING, 1.0)
    told = "".join(node.logs.read_text() for node in live.nodes)
    assert "cluster.copies_disagree" in told and "shard.missing" in told
    with Peer(live.addresses[0], deadline_s=20) as peer:
        assert peer.connect(client_id, **lasting).session_present
        peer.publish(topic_of(HERE), b"meanwhile", qos=2)
        peer.send(wire.publish(topic_of(MISSING), b"waits", 2, WAITING_ID))
        with pytest.raises(TimeoutError):
            peer.receive(2.0)  # nobody can have it
    first = live.nodes[0]
    forced = rumqd("cluster", "force-leader", str(MISSING), "--data", str(first.data), stdin=b"demo\n")
    assert forced.status == 0, forced.out + forced.err
    assert serves(live, MISSING)
    with Peer(live.addresses[0], deadline_s=20) as peer:
        assert peer.connect(client_id, **lasting).session_present
        peer.send(wire.publish(topic_of(MISSING), b"waits", 2, WAITING_ID, dup=True))
        assert peer.expect(Kind.PUBREC).packet_id == WAITING_ID
        peer.send(wire.ack(Kind.PUBREL, WAITING_ID))
        assert peer.expect(Kind.PUBCOMP).packet_id == WAITING_ID
        peer.publish(topic_of(MISSING), b"after", qos=2)
        peer.subscribe("$log/earliest/#", qos=0)
        payloads = list(iter(partial(maybe_payload, peer), None))
    found = {name: payloads.count(name) for name in (b"before", b"meanwhile", b"waits", b"after")}
    assert found == {b"before": SHARDS, b"meanwhile": 1, b"waits": 1, b"after": 1}
