"""Several shards as an operator and clients meet them: the same broker, whatever their number."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from commitlog import OpenOptions, RealFiles, StoreLayout, StreamSpec, open_store
from rumq.mqtt.topics import matches
from rumq.process.broker.resharding import Resharding
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.recovery.fit_to_log import fit_to_log
from tests.broker_process import Rumqd
from tests.commitlog.records import DEAD, NOW, append, some_records, write
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Prop, Will
from tests.faults.kill.test_shards import shards_of

LASTING = [(Prop.SESSION_EXPIRY, 3600)]
CLIENTS = [f"c{n}" for n in range(8)]  # some live in each shard


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path / "data", "--set", "shards.count=2")
    broker.start()
    yield broker
    broker.end()


def payloads(broker: Rumqd, client_id: str, count: int) -> list[bytes]:
    with Peer(broker.address) as peer:
        assert peer.connect(client_id, clean=False, properties=LASTING).session_present
        return [message.payload for message in peer.messages(count)]


def test_sessions_and_retained_messages_move_with_the_number_of_shards(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = Rumqd(data, "--set", "shards.count=1", "--set", 'stream=[{name="m", filters=["#"], partitions=3}]')
    broker.start()
    for client_id in CLIENTS:
        with Peer(broker.address) as peer:
            peer.connect(client_id, clean=False, properties=LASTING)
            peer.subscribe(f"to/{client_id}", qos=1)
    retained = {f"state/{n}": b"%d" % n for n in range(6)}
    with Peer(broker.address) as peer:
        peer.connect("publisher")
        for topic, payload in retained.items():
            peer.publish(topic, payload, qos=1, retain=True)
    for count in (2, 3, 1):
        with Peer(broker.address) as peer:
            peer.connect("publisher")
            for client_id in CLIENTS:
                peer.publish(f"to/{client_id}", b"before %d" % count, qos=1)
        assert broker.stop() == 0
        broker.flags = ("--set", f"shards.count={count}", *broker.flags[2:])
        broker.start()
        assert broker.named("shard.rehomed")[0]["sessions"] == len(CLIENTS)
        for client_id in CLIENTS:
            assert payloads(broker, client_id, 1) == [b"before %d" % count]
        with Peer(broker.address) as peer:
            peer.connect("reader")
            peer.subscribe("state/#", qos=1)
            assert {m.topic: m.payload for m in peer.messages(len(retained))} == retained
    broker.end()


def test_shared_groups_move_with_the_number_of_shards(tmp_path: Path) -> None:
    """Members live in other shards than their groups."""
    broker = Rumqd(tmp_path / "data", "--set", "shards.count=1")
    broker.start()
    groups = {name: f"$share/{name}/to/{name}" for name in CLIENTS}
    for name, asked in groups.items():
        with Peer(broker.address) as peer:
            peer.connect(name, clean=False, properties=LASTING)
            peer.subscribe(asked, qos=1)
    for count in (3, 2):
        with Peer(broker.address) as peer:
            peer.connect("publisher")
            for name in groups:
                peer.publish(f"to/{name}", b"before %d" % count, qos=1)
        assert broker.stop() == 0
        broker.flags = ("--set", f"shards.count={count}")
        broker.start()
        for name in groups:
            with Peer(broker.address) as peer:
                assert peer.connect(name, clean=False, properties=LASTING).session_present
                while peer.message().payload != b"before %d" % count:
                    pass  # of the time before, if its acknowledgement came with the end
    broker.end()


def test_what_members_of_shared_groups_have_had_does_not_come_again_after_a_kill(two: Rumqd) -> None:
    """Homes of some of the groups are in the other shard, which has not written down yet what members here had."""
    groups, jobs = 4, 10
    with Peer(two.address) as worker:
        worker.connect("worker", clean=False, properties=[*LASTING, (Prop.RECEIVE_MAXIMUM, 200)])
        for number in range(groups):
            worker.subscribe(f"$share/g{number}/jobs/#", qos=2)
        with Peer(two.address) as publisher:
            publisher.connect("publisher")
            publisher.publish_all("jobs/1", [b"job %d" % number for number in range(jobs)], 2)
        first = worker.messages(groups * jobs, ack=False)
        for packet in first[::2]:
            worker.acknowledge(packet)
        worker.subscribe("other")  # answered once all of this is in the journal
        worker.leave()
    two.kill()
    two.start()
    with Peer(two.address) as worker:
        assert worker.connect("worker", clean=False, properties=LASTING).session_present
        rest = worker.messages(groups * jobs // 2)
        worker.expect_silence()
    assert sorted(packet.payload for packet in rest) == sorted(packet.payload for packet in first[1::2])


def test_positions_beyond_what_another_shard_lived_to_write_do_not_move(tmp_path: Path) -> None:
    """A run has shown records up to lsn 5 and written 2; the next one wrote 3 more, and the shard never met it."""
    internal = StreamSpec("_state", (), 1, "disk", 1 << 16)
    layout = StoreLayout([StreamSpec("main", ("#",))], matches)
    for count in (2, 3, 0):
        store = open_store(RealFiles(), str(tmp_path / "data"), layout, OpenOptions(NOW), holder=DEAD)
        if count:
            append(store.own[0], some_records(count))
            write(store.own[0])
            store.close()
    replayed = ReplayedState()
    replayed.layout = ("main/g1/p0",)
    replayed.retained_from, replayed.tags_from, replayed.runs = [0], [0], [(77, 1)]
    session = replayed.sessions[1] = ReplayedSession(1, "c", 5, 100)
    session.cursors[0] = [5]
    moving = Resharding(store, internal, NOW)
    fit_to_log(replayed, replayed.layout, moving.same_below(replayed))
    assert session.cursors[0] == [2]
    replayed.runs = [(0, 0)]
    assert moving.same_below(replayed) == [5], "the shard that has written it knows what is there"
    store.close()


@pytest.mark.parametrize("lasting", [False, True], ids=["clean", "lasting"])
def test_wills_of_a_broker_that_was_killed_are_sent_by_one_with_other_shards(tmp_path: Path, lasting: bool) -> None:
    """Also of clients whose sessions end with their connections: nothing else of those is left."""
    broker = Rumqd(tmp_path / "data", "--set", "shards.count=1")
    broker.start()
    with Peer(broker.address) as watcher:
        watcher.connect("watcher", clean=False, properties=LASTING)
        watcher.subscribe("wills", qos=1)
    willing = [Peer(broker.address) for _ in CLIENTS]
    for client_id, peer in zip(CLIENTS, willing, strict=True):
        peer.connect(client_id, properties=LASTING * lasting, will=Will("wills", client_id.encode(), 1))
    with Peer(broker.address) as behind:  # what was written to the journal before is on the disk, then
        behind.connect("behind", clean=False, properties=LASTING)
    broker.kill()
    broker.flags = ("--set", "shards.count=2", *stream_of(1))
    broker.start()
    assert broker.event("shard.rehomed")["shards"] == 2
    assert sorted(payloads(broker, "watcher", len(CLIENTS))) == [name.encode() for name in CLIENTS]
    broker.end()
    for peer in willing:
        peer.close()


def stream_of(partitions: int) -> tuple[str, str]:
    return "--set", f'stream=[{{name="main", filters=["#"], partitions={partitions}}}]'


def test_a_client_id_is_taken_over_whichever_shard_accepts(two: Rumqd) -> None:
    for client_id in CLIENTS:
        with Peer(two.address) as first, Peer(two.address) as second:
            first.connect(client_id)
            second.connect(client_id)
            assert first.receive().code == 0x8E


def test_a_shard_that_dies_takes_only_its_own_connections(two: Rumqd) -> None:
    peers = [Peer(two.address) for _ in CLIENTS]
    for client_id, peer in zip(CLIENTS, peers, strict=True):
        peer.connect(client_id)
        peer.subscribe("news", qos=1)
    os.kill(shards_of(two.process.pid)[0], signal.SIGKILL)
    two.event("shard.ready")
    with Peer(two.address) as publisher:
        publisher.connect("publisher")
        publisher.publish("news", b"x", qos=1)
    got = 0
    for peer in peers:
        try:
            got += peer.message().payload == b"x"
        except (Ended, ConnectionError):
            continue
    assert 0 < got < len(CLIENTS)
    for peer in peers:
        peer.close()


def test_a_connect_that_is_longer_than_a_datagram_finds_its_home(two: Rumqd) -> None:
    for client_id in CLIENTS[:4]:
        with Peer(two.address) as peer, Peer(two.address) as watcher:
            watcher.connect(f"w{client_id}")
            watcher.subscribe("wills", qos=1)
            peer.connect(client_id, will=Will("wills", b"w" * 60_000, 1))
            peer.close()
            assert len(watcher.message().payload) == 60_000


def test_a_stream_keeps_its_partitions_and_says_so(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data", "--set", "shards.count=2")
    broker.start()
    assert broker.stop() == 0
    broker.flags = ("--set", 'stream=[{name="main", filters=["#"], partitions=5}]')
    broker._launch()
    assert broker.ended() == 3
    assert "main has 2 partitions here" in str(broker.events)
    broker.end()


@pytest.mark.parametrize("shards", [1, 2])
def test_sighup_reloads_what_can_change_and_says_what_cannot(tmp_path: Path, shards: int) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f"[shards]\ncount = {shards}\n[mqtt]\nmaximum_qos = 2\n")
    broker = Rumqd(tmp_path / "data", "--config", str(config))
    broker.start()
    config.write_text(
        f"[shards]\ncount = {shards}\n[mqtt]\nmaximum_qos = 1\noutbox_bytes_max = 8192\n[listener]\nbacklog = 5\n"
    )
    broker.process.send_signal(signal.SIGHUP)
    told = broker.event("settings.reloaded", number=shards)
    assert told["changed"] == ["mqtt.maximum_qos"]
    assert told["after_restart"] == ["listener.backlog", "mqtt.outbox_bytes_max"]
    for client_id in CLIENTS[:3]:
        with Peer(broker.address) as peer:
            assert peer.connect(client_id).get(Prop.MAXIMUM_QOS) == 1
    config.write_text("[mqtt]\nmaximum_qos = 7\n")
    broker.process.send_signal(signal.SIGHUP)
    assert "maximum_qos" in broker.event("settings.refused", number=shards)["why"]
    broker.end()


@pytest.mark.parametrize("shards", [1, 2])
def test_a_stop_has_five_phases(tmp_path: Path, shards: int) -> None:
    broker = Rumqd(tmp_path / "data", "--set", f"shards.count={shards}")
    broker.start()
    peers = [Peer(broker.address) for _ in CLIENTS]
    for client_id, peer in zip(CLIENTS, peers, strict=True):
        peer.connect(client_id)
    assert broker.stop() == 0
    broker.event("broker.stopped")
    told = [event["phase"] for event in broker.named("broker.stop_phase")]
    phases = ["no new connections", "clients told", "log written", "shards drained", "log sealed"]
    assert sorted(told) == sorted(phases * shards)
    if shards == 1:
        assert told == phases
    for peer in peers:
        assert peer.receive().code == 0x8B
        peer.close()
