"""MQTT 3.1, the version before 3.1.1: protocol name MQIsdp, level 3. MQTT V3.1 Protocol Specification."""

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.wire import Will


def test_a_31_client_is_served(join: Dial, name: str, topic: str, qos: int) -> None:
    peer = join(name, 3)
    assert peer.subscribe(topic, qos=qos) == [qos]
    peer.publish(topic, b"x", qos)
    message = peer.message()
    assert (message.payload, message.qos) == (b"x", qos)
    assert peer.unsubscribe(topic) == []
    peer.leave()


def test_a_31_session_lasts(join: Dial, name: str, topic: str) -> None:
    peer = join(name, 3, clean=False)
    peer.subscribe(topic, qos=1)
    peer.leave()
    join(version=5).publish(topic, b"waited", 1)
    assert join(name, 3, clean=False).payloads(1) == [b"waited"]


def test_a_31_connack_has_no_session_present(join: Dial, name: str) -> None:
    """3.2: the first byte of its variable header is reserved."""
    join(name, 3, clean=False).leave()
    assert not join(name, 3, clean=False).connack.session_present


def test_a_31_will_and_its_retained_message(join: Dial, name: str, topic: str) -> None:
    watcher = join(version=3)
    watcher.subscribe(topic, qos=1)
    join(name, 3, will=Will(topic, b"will", 1, retain=True)).close()
    assert watcher.message().payload == b"will"
    late = join(version=3)
    late.subscribe(topic)
    assert late.message().retain


def test_a_31_client_may_have_a_password_only_with_a_user_name(dial: Dial, name: str) -> None:
    assert dial(3).connect(name, username="u", password=b"p").code == 0


def test_an_empty_31_client_identifier_is_refused_or_served(dial: Dial) -> None:
    """3.1 wants 1 to 23 characters: return code 2 otherwise."""
    assert dial(3).connect("").code in (0, 2)


def test_the_name_and_the_level_of_31_belong_together(dial: Dial, name: str) -> None:
    for protocol, level in (("MQIsdp", 4), ("MQTT", 3)):
        peer = dial(4)
        peer.send(wire.frame(0x10, wire.text(protocol) + bytes([level, 2, 0, 60]) + wire.text(name)))
        assert [answer.code for answer in peer.rest_until_end()] in ([], [1])
