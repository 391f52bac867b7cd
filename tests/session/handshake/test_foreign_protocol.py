"""What a stranger said instead of CONNECT is named for the operator."""

import pytest

from rumq.session.handshake.foreign_protocol import NO_TLS, describe
from tests.session.broker import Broker, Wire

FIRST = {
    b"\x16\x03\x01": "TLS",
    b"GET / HTTP/1.1\r\n": "HTTP",
    b"PRI * HTTP/2.0": "HTTP",
    b"SSH-2.0-OpenSSH": "SSH",
    b"PROXY TCP4 1.2.3.4": "PROXY",
    b"\x30\x03": "not CONNECT",
}


@pytest.mark.parametrize("data", FIRST)
def test_the_first_bytes_tell_the_protocol(data: bytes) -> None:
    assert FIRST[data] in describe(data)


@pytest.mark.parametrize("data", FIRST)
def test_the_connection_ends_and_only_a_tls_client_hears_why(data: bytes) -> None:
    wire = Wire(Broker())
    wire.say(data)
    assert wire.closed and bytes(wire._bytes) == (NO_TLS if data[0] == 0x16 else b"")
