"""What takes real seconds: keep alive, session expiry, will delay, message expiry. MQTT 5.0, 3.1.2.10,
3.1.2.11.2, 3.1.3.2.2 and 3.3.2.3.3; MQTT 3.1.1, 3.1.2.10.

The only tests that wait. All their scenes are set, then the clock runs once for all of them, then each test
looks at its own. A scene is set within SHORT_S, which leaves a busy machine some time for it."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance import wire
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Prop, Properties, Will

SHORT_S = 6  # keep alive, expiry or delay that is over when the clock has run
STEP_S, STEPS = 1.0, 10
WAIT_S = STEP_S * STEPS  # more than one and a half SHORT_S
LONG_S = 100  # a message expiry that is not over then
LASTING = (Prop.SESSION_EXPIRY, 600)
BOTH = (4, 5)


class Stage:
    """Clients by name, on topics and with client identifiers of this file alone."""

    def __init__(self, address: Address) -> None:
        self.address, self.peers = address, dict[str, Peer]()
        self.topic = f"conformance/{os.getpid()}/waiting"
        self.answering: set[str] = set()  # who still answered when the time was over
        self.begun = time.monotonic()

    def join(self, name: str, version: int = 5, **fields: Any) -> Peer:
        peer = self.peers[name] = Peer(self.address, version)
        answer = peer.connect(f"w{os.getpid()}{name}", **fields)
        assert answer.code == 0, answer
        return peer

    def watcher(self, name: str, qos: int = 0, **fields: Any) -> Peer:
        """A client that subscribes to the topic of its name, or to that which follows 'watch'."""
        peer = self.join(name, **fields)
        peer.subscribe(f"{self.topic}/{name.removeprefix('watch')}", qos=qos)
        return peer

    def will(self, name: str, delay: int | None = None) -> Will:
        properties: Properties = [] if delay is None else [(Prop.WILL_DELAY, delay)]
        return Will(f"{self.topic}/{name}", name.encode(), properties=properties)

    def counted_down(self) -> range:
        """What may be left of LONG_S, in whole seconds: it began after `begun`, and before the clock ran."""
        return range(LONG_S - 1 - int(time.monotonic() - self.begun), LONG_S - int(WAIT_S) + 2)

    def publish(self, name: str, payload: bytes, qos: int, **fields: Any) -> None:
        self.peers["publisher"].publish(f"{self.topic}/{name}", payload, qos, **fields)


def set_keep_alive(stage: Stage) -> None:
    for version in BOTH:
        stage.watcher(f"watchsilent{version}")
        stage.join(f"silent{version}", version, keep_alive=SHORT_S, will=stage.will(f"silent{version}"))
        stage.join(f"speaking{version}", version, keep_alive=SHORT_S)
        stage.join(f"unlimited{version}", version, keep_alive=0)
    stage.watcher("listening", keep_alive=SHORT_S)


def set_sessions(stage: Stage) -> None:
    brief = [(Prop.SESSION_EXPIRY, SHORT_S)]
    stage.join("expired", properties=brief).leave()
    assert stage.join("expired", clean=False, properties=brief).connack.session_present
    stage.peers["expired"].leave()
    stage.join("shortened", properties=[LASTING]).leave(0, brief)
    stage.watcher("connected", 1, properties=brief)


def set_wills(stage: Stage) -> None:
    scenes = (
        ("delayed", SHORT_S, 600),
        ("ended", 600, SHORT_S),
        ("resumed", SHORT_S, 600),
        ("kept", 600, 600),
    )
    for name, delay, expiry in scenes:
        stage.watcher(f"watch{name}")
        stage.join(name, will=stage.will(name, delay), properties=[(Prop.SESSION_EXPIRY, expiry)])
    stage.peers["resumed"].close()
    stage.join("resumed", clean=False, properties=[LASTING])
    for name in ("delayed", "ended"):
        stage.peers[name].close()
        stage.peers[f"watch{name}"].expect_silence()
    stage.peers["kept"].close()


def set_messages(stage: Stage) -> None:
    stage.watcher("away", 1, properties=[LASTING]).leave()
    for place, expiry in enumerate(([(Prop.MESSAGE_EXPIRY, SHORT_S)], [(Prop.MESSAGE_EXPIRY, LONG_S)], [])):
        stage.publish("away", b"%d" % place, 1, properties=expiry)
        stage.publish(f"retained/{place}", b"%d" % place, 1, properties=expiry, retain=True)
    for qos in (1, 2):
        stage.watcher(f"sent{qos}", qos)
        stage.publish(f"sent{qos}", b"x", qos, properties=[(Prop.MESSAGE_EXPIRY, SHORT_S)])
        stage.peers[f"sent{qos}"].message(ack=False)
    old = stage.join("old", 4)
    old.subscribe(f"{stage.topic}/old", qos=1)
    stage.publish("old", b"x", 1)
    old.message(ack=False)


def step(stage: Stage, number: int) -> None:
    """What goes on while the clock runs: some speak, each time with another packet, and one is spoken to."""
    stage.publish("listening", b"x", 0)
    for version in BOTH:
        peer = stage.peers[f"speaking{version}"]
        if number % 3 == 0:
            peer.pending()
        elif number % 3 == 1:
            peer.send(wire.publish(f"{stage.topic}/nobody", b"x", version=version))
        else:
            peer.subscribe(f"{stage.topic}/nobody")


@pytest.fixture(scope="module")
def stage(broker: Address) -> Iterator[Stage]:
    """Every scene, WAIT_S after it was set."""
    stage = Stage(broker)
    stage.join("publisher")
    for scene in (set_messages, set_sessions, set_wills, set_keep_alive):
        scene(stage)
    for version in BOTH:
        stage.peers[f"watchsilent{version}"].expect_silence()
    for number in range(STEPS):
        time.sleep(STEP_S)
        step(stage, number)
    for version in BOTH:
        with contextlib.suppress(Ended, OSError):
            stage.peers[f"speaking{version}"].pending()
            stage.answering.add(f"speaking{version}")
    yield stage
    for peer in stage.peers.values():
        peer.close()


@pytest.mark.parametrize("version", BOTH, ids=["3.1.1", "5"])
def test_a_silent_client_is_ended_after_one_and_a_half_keep_alives(stage: Stage, version: int) -> None:
    """MQTT-3.1.2-22 (5), 3.1.2-24 (3.1.1): as if the network had failed, so the will is published."""
    assert stage.peers[f"watchsilent{version}"].message().payload == b"silent%d" % version
    stage.peers[f"silent{version}"].expect_refusal(0x8D, silent=True)


@pytest.mark.parametrize("version", BOTH, ids=["3.1.1", "5"])
def test_any_packet_keeps_a_connection_alive(stage: Stage, version: int) -> None:
    assert f"speaking{version}" in stage.answering


def test_what_the_broker_sends_does_not_keep_a_client_alive(stage: Stage) -> None:
    stage.peers["listening"].expect_refusal(0x8D, silent=True)


@pytest.mark.parametrize("version", BOTH, ids=["3.1.1", "5"])
def test_without_keep_alive_nobody_is_ended(stage: Stage, version: int) -> None:
    stage.peers[f"unlimited{version}"].expect_silence()


def test_a_session_ends_when_its_expiry_has_passed(stage: Stage) -> None:
    """MQTT-3.1.2-23, 4.1.0-2: it was there before, and is gone after."""
    assert not stage.join("expired", clean=False).connack.session_present


def test_the_expiry_on_disconnect_counts(stage: Stage) -> None:
    assert not stage.join("shortened", clean=False).connack.session_present


def test_a_connected_session_does_not_expire(stage: Stage) -> None:
    """MQTT-4.1.0-1."""
    stage.publish("connected", b"still here", 1)
    assert stage.peers["connected"].message().payload == b"still here"
    stage.peers["connected"].leave()
    assert stage.join("connected", clean=False).connack.session_present


def test_a_delayed_will_is_published_after_its_delay(stage: Stage) -> None:
    """MQTT-3.1.2-8; the scene saw that it was not there at once."""
    assert stage.peers["watchdelayed"].message().payload == b"delayed"


def test_a_delayed_will_is_published_when_the_session_expires_first(stage: Stage) -> None:
    assert stage.peers["watchended"].message().payload == b"ended"


def test_a_delayed_will_is_not_published_once_the_client_is_back(stage: Stage) -> None:
    """MQTT-3.1.3-9, beyond the delay."""
    stage.peers["watchresumed"].expect_silence()


def test_a_will_waits_as_long_as_its_delay(stage: Stage) -> None:
    stage.peers["watchkept"].expect_silence()


def test_messages_expire_and_count_down_while_they_wait(stage: Stage) -> None:
    """MQTT-3.3.2-5 and 3.3.2-6."""
    back = stage.join("away", clean=False, properties=[LASTING])
    aged, ageless = back.messages(2)
    assert (aged.payload, ageless.payload) == (b"1", b"2")
    assert aged.number(Prop.MESSAGE_EXPIRY, 0) in stage.counted_down()
    assert ageless.get(Prop.MESSAGE_EXPIRY) is None


def test_retained_messages_expire_and_count_down(stage: Stage) -> None:
    late = stage.join("late")
    late.subscribe(f"{stage.topic}/retained/+", qos=1)
    found = {one.payload: one for one in late.messages(2)}
    assert sorted(found) == [b"1", b"2"]
    assert found[b"1"].number(Prop.MESSAGE_EXPIRY, 0) in stage.counted_down()
    late.expect_silence()


def test_a_message_that_was_sent_does_not_expire(stage: Stage) -> None:
    """MQTT-4.3.3-7: no expiry once the PUBLISH is out; 4.3.3-13: the handshake goes on."""
    peer = stage.peers["sent2"]
    peer.send(wire.ack(Kind.PUBREC, 1))
    answer = peer.expect(Kind.PUBREL)
    assert (answer.packet_id, answer.code) == (1, 0)
    peer.send(wire.ack(Kind.PUBCOMP, 1))


@pytest.mark.parametrize("name", ["sent1", "old"])
def test_nothing_is_sent_again_for_lack_of_an_answer(stage: Stage, name: str) -> None:
    """MQTT-4.4.0-1 of 5; 3.1.1 names no other time either."""
    stage.peers[name].expect_silence()
