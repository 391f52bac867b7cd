"""A broker is killed (kill -9) in the middle of each exchange with a persistent session: nothing of it is forgotten.

MQTT 5.0, 4.1 and 4.4; docs/reference/session-journal.md."""

import itertools

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop
from tests.limits.conftest import Dial, Run

EXPIRY = [(Prop.SESSION_EXPIRY, 3600)]
VERSIONS = [4, 5]


def lasting(broker: Rumqd, client_id: str, version: int = 5, **fields: object) -> Peer:
    """A client with a session that stays; `connack` says whether it was there."""
    peer = Peer(broker.address, version)
    if version == 5:
        fields = {"properties": [*EXPIRY, *fields.pop("properties", [])], **fields}  # type: ignore[misc]
    answer = peer.connect(client_id, clean=False, **fields)
    assert answer.code == 0, answer
    return peer


def again(broker: Rumqd, *left: Peer) -> None:
    broker.kill()
    for peer in left:
        peer.close()
    broker.start()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_and_what_came_for_it_survive(run: Run, join: Dial, version: int) -> None:
    broker = run()
    client = lasting(broker, "s", version)
    assert client.subscribe("a/+", qos=1) == [1]
    assert client.subscribe("b", qos=2) == [2]
    again(broker, client)
    publisher = join(broker, "p")
    publisher.publish("a/1", b"one", qos=1)
    publisher.publish("b", b"two", qos=2)
    publisher.publish("c", b"none", qos=1)
    again(broker, publisher)
    client = lasting(broker, "s", version)
    assert client.connack.session_present
    assert client.payloads(2) == [b"one", b"two"]
    client.expect_silence()


def test_a_session_that_is_not_to_stay_is_gone(run: Run, join: Dial) -> None:
    broker = run()
    client = join(broker, "s")
    client.subscribe("a", qos=1)
    again(broker, client)
    client = lasting(broker, "s")
    assert not client.connack.session_present


def test_an_unsubscription_is_remembered(run: Run, join: Dial) -> None:
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", "b", qos=1)
    assert client.unsubscribe("a") == [0]
    again(broker, client)
    join(broker, "p").publish_all("a", [b"no"], qos=1)
    join(broker, "q").publish_all("b", [b"yes"], qos=1)
    client = lasting(broker, "s")
    assert client.payloads(1) == [b"yes"]
    client.expect_silence()


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_sent_and_not_acknowledged_comes_again_with_its_packet_id(run: Run, join: Dial, qos: int) -> None:
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", qos=qos)
    publisher = join(broker, "p")
    publisher.publish_all("a", [b"%d" % n for n in range(5)], qos=qos)
    first = client.messages(5, ack=False)
    if qos == 1:
        wait_for_the_journal(broker)
    again(broker, client, publisher)
    client = lasting(broker, "s")
    second = client.messages(5)
    assert [(m.packet_id, m.payload) for m in second] == [(m.packet_id, m.payload) for m in first]
    assert all(m.dup for m in second)
    client.expect_silence()


def wait_for_the_journal(broker: Rumqd) -> None:
    """What is written soon is written: a new session is, behind it."""
    with lasting(broker, "behind"):
        pass


def let_a_tide_pass(broker: Rumqd) -> None:
    """A second goes by, for a session that lasts so long ends; what came of it is written."""
    with Peer(broker.address) as brief:
        brief.connect("brief", properties=[(Prop.SESSION_EXPIRY, 1)])
        brief.leave()
    broker.event("session.expired")
    wait_for_the_journal(broker)


def test_a_message_of_qos_1_that_was_acknowledged_does_not_come_again(run: Run, join: Dial) -> None:
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", qos=1)
    publisher = join(broker, "p")
    publisher.publish_all("a", [b"%d" % n for n in range(5)], qos=1)
    assert client.payloads(5) == [b"%d" % n for n in range(5)]
    client.expect_silence()
    wait_for_the_journal(broker)
    again(broker, client, publisher)
    lasting(broker, "s").expect_silence()


def test_qos_2_goes_on_with_pubrel_once_pubrel_was_sent(run: Run, join: Dial) -> None:
    """After PUBREL the message itself must not come again: its packet id may mean another one. MQTT-4.3.3-6"""
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", qos=2)
    publisher = join(broker, "p")
    publisher.publish("a", b"once", qos=2)
    message = client.message(ack=False)
    client.send(wire.ack(Kind.PUBREC, message.packet_id))
    assert client.expect(Kind.PUBREL).packet_id == message.packet_id
    again(broker, client, publisher)
    client = lasting(broker, "s")
    assert client.receive().kind == Kind.PUBREL
    client.send(wire.ack(Kind.PUBCOMP, message.packet_id))
    client.expect_silence()
    wait_for_the_journal(broker)
    again(broker, client)
    lasting(broker, "s").expect_silence()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_inbound_qos_2_message_is_taken_once(run: Run, join: Dial, version: int) -> None:
    broker = run()
    publisher = lasting(broker, "p", version)
    publisher.send(wire.publish("a", b"once", 2, 7, version=version))
    assert publisher.expect(Kind.PUBREC).packet_id == 7
    again(broker, publisher)
    publisher = lasting(broker, "p", version)
    publisher.send(wire.publish("a", b"once", 2, 7, dup=True, version=version))
    assert publisher.expect(Kind.PUBREC).packet_id == 7
    publisher.send(wire.ack(Kind.PUBREL, 7))
    assert publisher.expect(Kind.PUBCOMP).packet_id == 7
    again(broker, publisher)
    publisher = lasting(broker, "p", version)
    publisher.send(wire.publish("a", b"another", 2, 7, version=version))
    assert publisher.expect(Kind.PUBREC).packet_id == 7
    assert everything(join(broker, "r"), "a") == [b"once", b"another"]


def test_a_subscription_brings_what_is_retained_while_something_is_sent_again(run: Run, join: Dial) -> None:
    """MQTT-3.3.1-9. After a restart what is in flight is read from the disk, and SUBSCRIBE does not wait for it."""
    broker = run()
    join(broker, "p").publish("s", b"kept", qos=1, retain=True)
    client = lasting(broker, "s")
    client.subscribe("a", qos=1)
    join(broker, "q").publish_all("a", [b"%d" % n for n in range(50)], qos=1)
    client.messages(50, ack=False)
    wait_for_the_journal(broker)
    again(broker, client)
    client = Peer(broker.address)
    # All at once: the broker has no time to be done with the first before it reads the second.
    connect = wire.connect("s", clean=False, version=5, properties=EXPIRY)
    client.send(connect + wire.subscribe(1, [("s", 1)]) + wire.publish("s", b"new", 1, 1))
    came = [message for message in (client.receive() for _ in range(55)) if message.kind == Kind.PUBLISH]
    assert [message.payload for message in came] == [*(b"%d" % n for n in range(50)), b"kept", b"new"]
    assert [message.retain for message in came[-2:]] == [True, False]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_session_has_nothing_of_what_an_ended_one_of_its_name_sent(run: Run, join: Dial, version: int) -> None:
    """MQTT-4.3.3-12: without its session a packet id is a new message, before and after a kill."""
    broker = run()
    first = lasting(broker, "p", version)
    for packet_id, released in ((7, True), (8, False)):
        first.send(wire.publish("a", b"first %d" % packet_id, 2, packet_id, version=version))
        assert first.expect(Kind.PUBREC).packet_id == packet_id
        if released:
            first.send(wire.ack(Kind.PUBREL, packet_id))
            assert first.expect(Kind.PUBCOMP).packet_id == packet_id
    first.leave()
    with Peer(broker.address, version) as between:
        between.connect("p", clean=True)
        between.publish("a", b"between", qos=2)
    second = lasting(broker, "p", version)
    assert not second.connack.session_present
    second.send(wire.publish("a", b"second 9", 2, 9, version=version))
    assert second.expect(Kind.PUBREC).packet_id == 9
    again(broker, second)
    second = lasting(broker, "p", version)
    assert second.connack.session_present
    for packet_id in (1, 7, 8, 9):
        second.send(wire.publish("a", b"second %d" % packet_id, 2, packet_id, version=version))
        assert second.expect(Kind.PUBREC).packet_id == packet_id
    found = everything(join(broker, "r"), "a")
    assert found == [b"first 7", b"first 8", b"between", b"second 9", b"second 1", b"second 7", b"second 8"]


def everything(reader: Peer, topic: str) -> list[bytes]:
    reader.publish(topic, b"end", qos=1)
    reader.subscribe(f"$log/earliest/{topic}", qos=1)
    found = []
    while (payload := reader.message().payload) != b"end":
        found.append(payload)
    return found


def test_tags_are_right_however_often_a_packet_id_is_used(run: Run, join: Dial) -> None:
    """Between two kills a packet id is used, released and used again; the journal has part of it, the log the rest."""
    broker = run()
    sent = []
    number = itertools.count()
    for uses in (1, 2, 3, 2):
        publisher = lasting(broker, "p")
        for use in range(uses):
            payload = b"%d" % next(number)
            publisher.send(wire.publish("a", payload, 2, 9))
            assert publisher.expect(Kind.PUBREC).code == 0
            sent.append(payload)
            if use < uses - 1:
                publisher.send(wire.ack(Kind.PUBREL, 9))
                assert publisher.expect(Kind.PUBCOMP).code == 0
        again(broker, publisher)
        publisher = lasting(broker, "p")
        publisher.send(wire.publish("a", sent[-1], 2, 9, dup=True))
        assert publisher.expect(Kind.PUBREC).code == 0
        publisher.send(wire.ack(Kind.PUBREL, 9))
        assert publisher.expect(Kind.PUBCOMP).code == 0
        publisher.leave()
    assert everything(join(broker, "r"), "a") == sent


@pytest.mark.parametrize("delay", [0, 1])
def test_a_will_is_sent_after_the_restart(run: Run, join: Dial, delay: int) -> None:
    broker = run()
    watcher = lasting(broker, "w")
    watcher.subscribe("wills", qos=1)
    will = wire.Will("wills", b"gone", 1, properties=[(Prop.WILL_DELAY, delay)])
    client = lasting(broker, "s", will=will)
    again(broker, client, watcher)
    watcher = lasting(broker, "w")
    assert watcher.payloads(1) == [b"gone"]
    watcher.expect_silence()


def test_a_will_that_waits_is_dropped_when_its_client_is_back(run: Run, join: Dial) -> None:
    broker = run()
    watcher = lasting(broker, "w")
    watcher.subscribe("wills", qos=1)
    will = wire.Will("wills", b"gone", 1, properties=[(Prop.WILL_DELAY, 600)])
    client = lasting(broker, "s", will=will)
    again(broker, client, watcher)
    client = lasting(broker, "s")
    assert client.connack.session_present
    watcher = lasting(broker, "w")
    watcher.expect_silence()


def test_the_will_of_a_client_without_a_session_to_stay_is_sent_too(run: Run, join: Dial) -> None:
    broker = run()
    watcher = lasting(broker, "w")
    watcher.subscribe("wills", qos=1)
    client = join(broker, "s", will=wire.Will("wills", b"gone", 1))
    wait_for_the_journal(broker)
    again(broker, client, watcher)
    watcher = lasting(broker, "w")
    assert watcher.payloads(1) == [b"gone"]


def test_a_session_expires_while_the_broker_is_down(run: Run, join: Dial) -> None:
    broker = run()
    client = Peer(broker.address)
    client.connect("s", clean=False, properties=[(Prop.SESSION_EXPIRY, 1)])
    client.subscribe("a", qos=1)
    client.leave()
    wait_for_the_journal(broker)
    broker.kill()
    broker.start()
    told = broker.event("session.expired")
    assert told["client_id"] == "s"
    assert not lasting(broker, "s").connack.session_present


def test_retained_messages_survive_and_so_does_their_end(run: Run, join: Dial) -> None:
    broker = run()
    publisher = join(broker, "p")
    for topic in ("a", "b", "c"):
        publisher.publish(topic, b"old", qos=1, retain=True)
    publisher.publish("a", b"new", qos=1, retain=True)
    publisher.publish("b", b"", qos=1, retain=True)
    again(broker, publisher)
    reader = join(broker, "r")
    reader.subscribe("#", qos=1)
    assert {(m.topic, m.payload, m.retain) for m in reader.messages(2)} == {
        ("a", b"new", True),
        ("c", b"old", True),
    }
    reader.expect_silence()


def test_a_shared_subscription_hands_everything_to_somebody(run: Run, join: Dial) -> None:
    """One member stays, one goes with the broker: what either had not acknowledged is not lost, nothing is twice."""
    broker = run()
    stays = lasting(broker, "stays")
    stays.subscribe("$share/g/a", qos=1)
    goes = join(broker, "goes")
    goes.subscribe("$share/g/a", qos=1)
    publisher = join(broker, "p")
    sent = {b"%d" % n for n in range(40)}
    publisher.publish_all("a", sorted(sent), qos=1)
    kept = [m.payload for m in stays.pending()]
    lost = [m.payload for m in goes.pending()]
    assert set(kept) | set(lost) == sent and kept and lost
    let_a_tide_pass(broker)
    again(broker, stays, goes, publisher)
    stays = lasting(broker, "stays")
    assert sorted(stays.payloads(40)) == sorted(sent)
    stays.expect_silence()


def test_a_replay_goes_on_where_it_was(run: Run, join: Dial) -> None:
    broker = run()
    publisher = join(broker, "p")
    publisher.publish_all("a", [b"%d" % n for n in range(10)], qos=1)
    client = lasting(broker, "s", properties=[(Prop.RECEIVE_MAXIMUM, 3)])
    client.subscribe("$log/earliest/a", qos=1)
    assert client.payloads(4) == [b"0", b"1", b"2", b"3"]
    wait_for_the_journal(broker)
    again(broker, client, publisher)
    join(broker, "p").publish("a", b"10", qos=1)
    client = lasting(broker, "s")
    found = client.messages(7)
    assert [m.payload for m in found] == [b"%d" % n for n in range(4, 11)]
    client.expect_silence()


def test_a_subscription_made_while_behind_is_kept_apart_and_whole(run: Run, join: Dial) -> None:
    """A late reader (router.readers.subscriber) and the main one survive with their own places."""
    broker = run()
    client = lasting(broker, "s", properties=[(Prop.RECEIVE_MAXIMUM, 1)])
    client.subscribe("a", qos=1)
    publisher = join(broker, "p")
    publisher.publish_all("a", [b"a%d" % n for n in range(5)], qos=1)
    client.subscribe("b", qos=1)
    publisher.publish_all("b", [b"b%d" % n for n in range(5)], qos=1)
    wait_for_the_journal(broker)
    again(broker, client, publisher)
    client = lasting(broker, "s")
    found = sorted(client.payloads(10))
    assert found == [b"a%d" % n for n in range(5)] + [b"b%d" % n for n in range(5)]


def test_what_was_promised_before_a_stop_is_kept_too(run: Run, join: Dial) -> None:
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", qos=2)
    assert broker.stop() == 0
    broker.start()
    join(broker, "p").publish("a", b"x", qos=2)
    assert broker.stop() == 0
    broker.start()
    client = lasting(broker, "s")
    assert client.payloads(1) == [b"x"]


def test_a_session_is_there_as_soon_as_connack_said_so(run: Run) -> None:
    broker = run()
    client = lasting(broker, "s")
    again(broker, client)
    assert lasting(broker, "s").connack.session_present


def test_qos_0_comes_at_most_once(run: Run, join: Dial) -> None:
    """What a connected session may have had before the crash is not sent again; what came while it was away is."""
    broker = run()
    client = lasting(broker, "s")
    client.subscribe("a", qos=0)
    publisher = join(broker, "p")
    publisher.send(wire.publish("a", b"had"))
    assert client.payloads(1) == [b"had"]
    publisher.publish("other", b"behind it on disk", qos=1)
    again(broker, client, publisher)
    lasting(broker, "s").leave()
    publisher = join(broker, "p")
    publisher.publish("a", b"missed", qos=1)
    client = lasting(broker, "s")
    assert client.payloads(1) == [b"missed"]
    client.expect_silence()


def test_qos_1_that_may_have_come_before_says_so(run: Run, join: Dial) -> None:
    """Nothing was noted of the delivery yet when the broker died, so it comes again, and DUP tells. MQTT-3.3.1-1"""
    broker = run("--set", "log.linger_ms=10000")
    client = lasting(broker, "s")
    client.subscribe("a", qos=1)
    publisher = join(broker, "p")
    publisher.publish("a", b"x", qos=1)
    assert not client.message(ack=False).dup
    again(broker, client, publisher)
    client = lasting(broker, "s")
    assert client.message().dup
