"""What MQTT 5 adds to wills: reason codes, properties, delay. MQTT 5.0, 3.1.2.5, 3.1.3.2 and 3.14.4."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop, Properties, Will


@pytest.fixture
def watcher(join: Dial, topic: str) -> Peer:
    peer = join()
    peer.subscribe((topic, 0x02 | 0x08))
    return peer


def test_disconnect_with_will_publishes_it(join: Dial, watcher: Peer, name: str, topic: str) -> None:
    """3.14.2.1: reason code 0x04."""
    join(name, will=Will(topic, b"asked for")).leave(0x04)
    assert watcher.message().payload == b"asked for"


@pytest.mark.parametrize("code", [0x80, 0x82, 0x93, 0x98])
def test_disconnect_by_an_error_publishes_the_will(join: Dial, watcher: Peer, name: str, topic: str, code: int) -> None:
    """MQTT-3.1.2-8: only DISCONNECT 0x00 removes it."""
    join(name, will=Will(topic, b"error")).leave(code)
    assert watcher.message().payload == b"error"


def test_the_will_s_properties_reach_the_subscriber(join: Dial, watcher: Peer, name: str, topic: str) -> None:
    properties: Properties = [
        (Prop.PAYLOAD_FORMAT, 1),
        (Prop.MESSAGE_EXPIRY, 100),
        (Prop.CONTENT_TYPE, "text/plain"),
        (Prop.RESPONSE_TOPIC, "answer/here"),
        (Prop.CORRELATION_DATA, b"\0\1\2"),
        (Prop.USER_PROPERTY, ("b", "2")),
        (Prop.USER_PROPERTY, ("a", "1")),
        (Prop.USER_PROPERTY, ("b", "2")),
    ]
    join(name, will=Will(topic, b"text", properties=[(Prop.WILL_DELAY, 0), *properties])).close()
    message = watcher.message()
    found = dict(message.properties)
    assert 95 <= message.number(Prop.MESSAGE_EXPIRY, 0) <= 100
    for key, value in properties[1:5] if isinstance(properties, list) else ():
        assert key == Prop.MESSAGE_EXPIRY or found[key] == value
    assert found[Prop.PAYLOAD_FORMAT] == 1 and Prop.WILL_DELAY not in found
    assert message.all(Prop.USER_PROPERTY) == [("b", "2"), ("a", "1"), ("b", "2")]


def test_a_will_delay_is_not_waited_for_when_the_session_ends_at_once(
    join: Dial, watcher: Peer, name: str, topic: str
) -> None:
    """3.1.3.2.2: the will goes at the delay or at the session's end, whichever is first."""
    join(name, will=Will(topic, b"now", properties=[(Prop.WILL_DELAY, 600)])).close()
    assert watcher.message().payload == b"now"


def test_a_delayed_will_is_forgotten_when_the_client_resumes(join: Dial, watcher: Peer, name: str, topic: str) -> None:
    """MQTT-3.1.3-9."""
    will = Will(topic, b"never", properties=[(Prop.WILL_DELAY, 600)])
    join(name, will=will, properties=[(Prop.SESSION_EXPIRY, 600)]).close()
    back = join(name, clean=False, properties=[(Prop.SESSION_EXPIRY, 0)])
    back.leave()
    join().publish(topic, b"marker", 1)
    assert watcher.message().payload == b"marker"


def test_a_delayed_will_goes_out_when_a_clean_start_ends_its_session(
    join: Dial, watcher: Peer, name: str, topic: str
) -> None:
    """3.1.2.4 and 3.1.3.2.2: Clean Start ends the old session, which ends the delay."""
    will = Will(topic, b"session ended", properties=[(Prop.WILL_DELAY, 600)])
    join(name, will=will, properties=[(Prop.SESSION_EXPIRY, 600)]).close()
    join(name, clean=True)
    assert watcher.message().payload == b"session ended"


def test_a_take_over_that_resumes_cancels_a_delayed_will(join: Dial, watcher: Peer, name: str, topic: str) -> None:
    """3.1.4: with a Will Delay above 0 the new connection arrives within it."""
    will = Will(topic, b"never", properties=[(Prop.WILL_DELAY, 600)])
    join(name, will=will, properties=[(Prop.SESSION_EXPIRY, 600)])
    join(name, clean=False, properties=[(Prop.SESSION_EXPIRY, 600)])
    join().publish(topic, b"marker", 1)
    assert watcher.message().payload == b"marker"


def test_a_will_delay_survives_a_disconnect_that_ends_the_session(
    join: Dial, watcher: Peer, name: str, topic: str
) -> None:
    """DISCONNECT 0x04 with Session Expiry 0 ends the session, so a delayed will goes at once."""
    will = Will(topic, b"at once", properties=[(Prop.WILL_DELAY, 600)])
    peer = join(name, will=will, properties=[(Prop.SESSION_EXPIRY, 600)])
    peer.send(wire.disconnect(0x04, [(Prop.SESSION_EXPIRY, 0)]))
    peer.rest_until_end()
    assert watcher.message().payload == b"at once"
