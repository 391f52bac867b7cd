"""A client that speaks another protocol than the port is named to the operator, and answered in its own protocol."""

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.reasons import Reason
from rumq.net.transport.protocol_mismatch import answer, describe_on_tls, describe_on_websocket

PROXY_2 = b"\r\n\r\n\x00\r\nQUIT\n"


def connect(version: int) -> bytes:
    return encode(p.Connect(client_id="c", version=version), version)


@pytest.mark.parametrize(
    ("first", "on_tls", "on_websocket"),
    [
        (connect(5), "MQTT CONNECT without TLS", "MQTT CONNECT without WebSocket"),
        (b"GET / HTTP/1.1\r\n", "HTTP request without TLS", ""),
        (b"SSH-2.0-x", "SSH client", ""),
        (b"\x16\x03\x01", "", "TLS hello"),
        (PROXY_2, "PROXY protocol header", "PROXY protocol header"),
        (b"\xff\xff", "0xFF", "0xFF"),
    ],
)
def test_the_operator_reads_which_protocol_it_was(first: bytes, on_tls: str, on_websocket: str) -> None:
    assert on_tls in describe_on_tls(first)
    assert on_websocket in describe_on_websocket(first)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_mqtt_client_gets_a_connack_of_its_version(version: int) -> None:
    """MQTT 5.0, 3.2.2.2; MQTT 3.1.1, 3.2.2.3."""
    said = answer(connect(version))
    found = frame_at(said, 0, len(said))
    assert found is not None
    connack = decode(said[0], said[found[0] :], version)
    assert isinstance(connack, p.Connack)
    expected = Reason.IMPLEMENTATION_SPECIFIC_ERROR if version == 5 else Reason.SERVER_UNAVAILABLE
    assert connack.reason == expected


def test_a_browser_gets_a_bad_request() -> None:
    """RFC 9110, 15.5.1."""
    said = answer(b"GET / HTTP/1.1\r\n")
    assert said.startswith(b"HTTP/1.1 400 ") and said.endswith(b"This port speaks TLS.\n")


@pytest.mark.parametrize("first", [b"\xff", b"\x10\x02\x00\x00"])
def test_nobody_else_is_answered(first: bytes) -> None:
    assert answer(first) == b""
