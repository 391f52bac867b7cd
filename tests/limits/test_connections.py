"""More clients than there is room for, and one that takes its time: the others do not notice."""

import contextlib
import time

from commitlog.disk.preallocation import PIECE_BYTES_MIN
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop
from tests.limits.conftest import Dial, Run

SPARE = 6


def answers(peer: Peer) -> bool:
    """Whether the broker serves this client."""
    return peer.pending() == []


def test_one_client_more_than_allowed_is_turned_away_and_the_others_stay(run: Run, join: Dial) -> None:
    broker = run("--set", "listener.connections_max=3")
    first, *others = [join(broker, f"c{n}") for n in range(3)]
    assert Peer(broker.address).connect("surplus").code == 0x97
    assert Peer(broker.address, version=4).connect("surplus").code == 3
    told = broker.event("listener.overloaded")
    assert (told["connections"], told["turned_away"]) == (3, 1)
    assert all(map(answers, [first, *others]))
    first.leave()
    assert answers(join(broker, "next"))


def test_without_descriptors_it_waits_and_then_accepts_again(run: Run, join: Dial) -> None:
    """The accept loop neither ends nor spins; who is there already is served."""
    broker = run()
    join(broker, "first").publish("t", b"opens the log's file", qos=1)
    until = time.monotonic() + 60
    # The last that a broker opens at its start; and each segment has its second descriptor, for zeros ahead.
    while not (broker.data / "ask.sock").exists() or any(
        path.stat().st_size < PIECE_BYTES_MIN for path in broker.data.rglob("*.seg")
    ):
        assert time.monotonic() < until
        time.sleep(0.01)
    broker.limit_descriptors(SPARE)
    peers = [Peer(broker.address) for _ in range(2 * SPARE)]
    for number, peer in enumerate(peers):
        peer.send(wire.connect(f"c{number}"))
    assert broker.event("listener.accept_failed")["why"] == "Too many open files"
    here, waiting = peers[:SPARE], peers[SPARE:]
    assert [peer.expect(Kind.CONNACK).code for peer in here] == [0] * SPARE

    spent, told = broker.cpu_seconds(), len(broker.named("listener.accept_failed"))
    broker.event("listener.accept_failed", number=told + 4)
    # Four times retry_seconds, a second, have passed at least.
    assert broker.cpu_seconds() - spent < 0.25, "it waits between two attempts"

    assert here[0].subscribe("t", qos=1) == [1]
    assert here[1].publish("t", b"served", qos=1) == 0
    assert here[0].payloads(1) == [b"served"]
    for peer in here:
        peer.close()
    for peer in waiting:
        assert peer.expect(Kind.CONNACK).code == 0
        assert answers(peer)


def test_the_log_goes_on_while_clients_have_all_descriptors(run: Run) -> None:
    """A segment that is full is followed by the next one, whatever the clients have taken."""
    broker = run("--set", "log.segment_bytes_max=65536", descriptors=128)
    crowd = []
    for number in range(200):
        crowd.append(Peer(broker.address))
        with contextlib.suppress(ConnectionError):  # it may have been turned away already
            crowd[-1].send(wire.connect(f"c{number}"))
    assert broker.event("listener.limited")["descriptors"] == 128
    broker.event("listener.overloaded")
    here = [peer for peer in crowd[:2] if peer.expect(Kind.CONNACK).code == 0]
    sent = [b"%d" % n + bytes(5000) for n in range(40)]
    assert [here[0].publish("t", payload, qos=1) for payload in sent] == [0] * 40
    assert broker.named("log.failed") == []
    assert here[1].subscribe("$log/earliest/t", qos=1) == [1]
    assert here[1].payloads(40) == sent
    for peer in crowd:
        peer.close()


def test_who_takes_one_at_a_time_throttles_only_itself(run: Run, join: Dial) -> None:
    """Receive Maximum 1, and no PUBACK for a while. MQTT 5.0, 4.9."""
    broker = run()
    slow = join(broker, "slow", properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    quick, publisher = join(broker, "quick"), join(broker, "publisher")
    for subscriber in (slow, quick):
        subscriber.subscribe("t", qos=1)
    sent = [b"%d" % n for n in range(500)]
    publisher.publish_all("t", sent, qos=1)
    assert quick.payloads(500) == sent
    (held,) = slow.pending()
    assert held.payload == b"0"
    slow.send(wire.ack(Kind.PUBACK, held.packet_id))
    for payload in sent[1:]:
        message = slow.message(ack=False)
        assert message.payload == payload
        slow.send(wire.ack(Kind.PUBACK, message.packet_id))
    slow.expect_silence()


def test_the_clients_of_a_full_broker_can_be_killed_and_come_back(run: Run, join: Dial) -> None:
    """Room that a lost connection had is given to the next."""
    broker = run("--set", "listener.connections_max=50")
    for turn in range(4):
        clients = [join(broker, f"c{turn}-{n}") for n in range(50)]
        for client in clients:
            client.reset()
        broker.event("client.lost", number=50 * (turn + 1))
    assert broker.named("listener.overloaded") == []


def test_descriptors_of_clients_that_left_are_given_back(run: Run, join: Dial) -> None:
    broker = run()
    watcher = join(broker, "watcher", properties=[(Prop.SESSION_EXPIRY, 60)])  # the journal's file is open now
    taken = [descriptors_after(broker, watcher, join, clients) for clients in (1, 100)]
    assert taken[0] == taken[1]


def descriptors_after(broker: Rumqd, watcher: Peer, join: Dial, clients: int) -> int:
    for client in [join(broker, f"c{n}") for n in range(clients)]:
        client.leave()
    assert answers(watcher), "the broker has closed what it shut down before it answers another"
    return len(broker.descriptors())
