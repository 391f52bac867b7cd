"""MQTT over WebSocket. MQTT 5.0 and 3.1.1, chapter 6."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance import wire
from tests.conformance.peer import Address
from tests.conformance.websocket import BINARY, CONTINUATION, PING, PONG, TEXT, WebSocket

Open = Callable[..., WebSocket]
CONNACK_4 = bytes.fromhex("20020000")


@pytest.fixture
def upgrade(websocket: Address) -> Iterator[Open]:
    """upgrade(protocols="mqtt") -> WebSocket: a handshake that has been answered."""
    peers: list[WebSocket] = []

    def call(protocols: str = "mqtt") -> WebSocket:
        peers.append(WebSocket(websocket, protocols))
        return peers[-1]

    yield call
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("offered", ["mqtt", "wamp, mqtt", "mqtt, other"])
def test_the_broker_chooses_the_subprotocol_mqtt(upgrade: Open, offered: str) -> None:
    """MQTT-6.0.0-3 and 6.0.0-4."""
    peer = upgrade(offered)
    assert peer.accepted and peer.headers["sec-websocket-protocol"] == "mqtt"


def test_packets_travel_in_binary_frames(upgrade: Open, version: int, name: str) -> None:
    """MQTT-6.0.0-1."""
    peer = upgrade()
    peer.send(wire.connect(name, version))
    answer = peer.binary(4)
    assert answer[0] == 0x20 and answer[3] == 0
    peer.send(wire.PINGREQ)
    assert peer.binary(2) == b"\xd0\0"


def test_a_text_frame_ends_the_connection(upgrade: Open, name: str) -> None:
    """MQTT-6.0.0-1."""
    peer = upgrade()
    peer.send(wire.connect(name, 4), TEXT)
    assert peer.ended()


def test_frames_and_packets_need_not_align(upgrade: Open, name: str, topic: str) -> None:
    """MQTT-6.0.0-2: a packet cut over frames, several in one frame, a frame cut into fragments."""
    peer = upgrade()
    for byte in wire.connect(name, 4):
        peer.send(bytes([byte]))
    assert peer.binary(4) == CONNACK_4
    peer.send(wire.PINGREQ * 3)
    assert peer.binary(6) == b"\xd0\0" * 3
    packet = wire.subscribe(7, [(topic, 1)], version=4)
    peer.send(packet[:5], BINARY, final=False)
    peer.send(packet[5:], CONTINUATION)
    assert peer.binary(5) == bytes.fromhex("9003000701")


def test_messages_flow_through_a_websocket(upgrade: Open, name: str, topic: str) -> None:
    peer = upgrade()
    message = wire.publish(topic, b"x" * 1000, version=4)
    peer.send(wire.connect(name, 4) + wire.subscribe(1, [(topic, 0)], version=4))
    assert peer.binary(9) == CONNACK_4 + bytes.fromhex("9003000100")
    peer.send(message)
    assert peer.binary(len(message)) == message


def test_a_websocket_ping_is_answered(upgrade: Open) -> None:
    """RFC 6455, 5.5.2."""
    peer = upgrade()
    peer.send(b"hello", PING)
    assert peer.frame() == (PONG, b"hello")
