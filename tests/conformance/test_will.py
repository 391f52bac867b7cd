"""Will messages. MQTT 5.0, 3.1.2.5 and 3.1.3.2; MQTT 3.1.1, 3.1.2.5. Delays over seconds: test_waiting.py."""

import pytest

from tests.conformance import wire
from tests.conformance.conftest import Dial
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop, Will


@pytest.fixture
def watcher(join: Dial, version: int, topic: str) -> Peer:
    peer = join(version=version)
    peer.subscribe(topic, qos=2)
    return peer


def expect_no_will(watcher: Peer, other: Peer, topic: str) -> None:
    other.publish(topic, b"marker", 1)
    assert watcher.message().payload == b"marker"
    watcher.expect_silence()


def test_a_lost_network_publishes_the_will(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic, b"lost")).close()
    assert watcher.message().payload == b"lost"


def test_a_reset_publishes_the_will(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic, b"lost")).reset()
    assert watcher.message().payload == b"lost"


def test_the_will_has_its_qos(join: Dial, watcher: Peer, version: int, name: str, topic: str, qos: int) -> None:
    join(name, version, will=Will(topic, qos=qos)).close()
    message = watcher.message()
    assert (message.qos, message.dup, message.retain) == (qos, False, False)


def test_a_disconnect_discards_the_will(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic)).leave()
    expect_no_will(watcher, join(version=version), topic)


def test_a_client_without_a_will_leaves_none(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    """MQTT-3.1.2-12 of 3.1.1; nor does the will of an earlier connection come back."""
    join(name, version, will=Will(topic)).leave()
    join(name, version).close()
    expect_no_will(watcher, join(version=version), topic)


def test_a_will_is_published_once(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    """MQTT-3.1.2-10: it leaves the session once published."""
    join(name, version, will=Will(topic, b"first"), clean=False).close()
    assert watcher.message().payload == b"first"
    join(name, version, clean=False).close()
    expect_no_will(watcher, join(version=version), topic)


def test_a_retained_will_is_kept(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic, b"kept", 1, retain=True)).close()
    live = watcher.message()
    assert (live.payload, live.retain) == (b"kept", False)
    late = join(version=version)
    late.subscribe(topic)
    found = late.message()
    assert (found.payload, found.retain) == (b"kept", True)


def test_a_will_without_retain_is_not_kept(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic)).close()
    watcher.message()
    late = join(version=version)
    late.subscribe(topic)
    late.expect_silence()


def test_an_empty_retained_will_clears_what_was_retained(
    join: Dial, watcher: Peer, version: int, name: str, topic: str
) -> None:
    join(version=version).publish(topic, b"old", 1, retain=True)
    assert watcher.message().payload == b"old"
    join(name, version, will=Will(topic, b"", retain=True)).close()
    assert watcher.message().payload == b""
    late = join(version=version)
    late.subscribe(topic)
    late.expect_silence()


def test_a_protocol_error_publishes_the_will(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    peer = join(name, version, will=Will(topic, b"erred"))
    peer.send(wire.frame(0x36, wire.text("x") + b"\0\1"))
    assert watcher.message().payload == b"erred"


def test_a_take_over_publishes_the_will_of_the_first(
    join: Dial, watcher: Peer, version: int, name: str, topic: str
) -> None:
    """MQTT 5.0, 3.1.4: the will is published since the old connection closes without DISCONNECT 0x00."""
    join(name, version, will=Will(topic, b"taken over"))
    join(name, version)
    assert watcher.message().payload == b"taken over"


def test_the_second_connection_s_will_replaces_the_first_s(
    join: Dial, watcher: Peer, version: int, name: str, topic: str
) -> None:
    join(name, version, will=Will(topic, b"one"))
    second = join(name, version, will=Will(topic, b"two"))
    assert watcher.message().payload == b"one"
    second.close()
    assert watcher.message().payload == b"two"


def test_the_subscriber_gets_its_own_will(join: Dial, version: int, name: str, topic: str) -> None:
    """A lasting session that subscribes to its will's topic finds it on its return."""
    fields = {"clean": False} | ({"properties": [(Prop.SESSION_EXPIRY, 60)]} if version == 5 else {})
    peer = join(name, version, will=Will(topic, b"mine", 1), **fields)
    peer.subscribe(topic, qos=1)
    if version == 5:
        peer.send(wire.disconnect(0x04))
        peer.rest_until_end()
    peer.close()
    watcher = join(version=version)
    watcher.subscribe(topic)
    assert join(name, version, **fields).message().payload == (b"mine")


def test_a_large_will_is_published_whole(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    payload = bytes(range(256)) * 200
    join(name, version, will=Will(topic, payload)).close()
    assert watcher.message().payload == payload


def test_an_empty_will_is_published(join: Dial, watcher: Peer, version: int, name: str, topic: str) -> None:
    join(name, version, will=Will(topic, b"")).close()
    assert watcher.message().payload == b""
