"""PROXY headers, versions 1 and 2: what they say, however they are cut, and who may send them."""

import socket
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.net.listening.proxy_protocol import (
    SIGNATURE,
    BadHeader,
    ProxyHeader,
    ProxyOptions,
    crc32c,
    parse_header,
)
from rumq.net.listening.transports import Transports
from rumq.net.sockets.unix import open_unix_socket
from rumq.net.tls.tls import TlsServer
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.kernels.test_frames import frame
from tests.net.site import Site, TlsClient, local
from tests.net.websocket.test_websocket import Peer, Plain, request

V4 = bytes([203, 0, 113, 7, 127, 0, 0, 1]) + struct.pack(">HH", 40001, 8883)
V6 = bytes.fromhex("20010db8000000000000000000000007") + bytes(15) + b"\1" + struct.pack(">HH", 40001, 8883)
HERE = ProxyOptions(networks=("127.0.0.0/8",))


def version_2(command: int, family: int, body: bytes, *values: tuple[int, bytes]) -> bytes:
    body += b"".join(bytes([kind]) + struct.pack(">H", len(value)) + value for kind, value in values)
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(body)) + body


def over_tls(client: int, verify: int, name: bytes | None) -> tuple[int, bytes]:
    inner = b"\x21\0\7TLSv1.3" + (b"" if name is None else b"\x22" + struct.pack(">H", len(name)) + name)
    return 0x20, struct.pack(">BI", client, verify) + inner


def with_checksum(header: bytes) -> bytes:
    """A header whose last value is a checksum of zeros gets the right one."""
    return header[:-4] + struct.pack(">I", crc32c(header))


GOOD = {
    b"PROXY TCP4 203.0.113.7 127.0.0.1 40001 8883\r\n": ("203.0.113.7:40001", False, None, ""),
    b"PROXY TCP6 2001:db8::7 ::1 40001 0\r\n": ("2001:db8::7:40001", False, None, ""),
    b"PROXY TCP6 " + b"ffff:" * 7 + b"ffff " + b"ffff:" * 7 + b"ffff 65535 65535\r\n": (
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:65535", False, None, "",
    ),
    b"PROXY UNKNOWN\r\n": ("", False, None, ""),
    b"PROXY UNKNOWN whatever it says\r\n": ("", False, None, ""),
    version_2(0x21, 0x11, V4): ("203.0.113.7:40001", False, None, ""),
    version_2(0x21, 0x21, V6): ("2001:db8::7:40001", False, None, ""),
    version_2(0x21, 0x31, b"/run/app".ljust(108, b"\0") + bytes(108)): ("unix:/run/app", False, None, ""),
    version_2(0x21, 0x00, b""): ("", False, None, ""),
    version_2(0x20, 0x00, b""): ("", False, None, ""),
    version_2(0x20, 0x99, b"junk"): ("", False, None, ""),
    version_2(0x21, 0x11, V4, (4, bytes(9)), (1, b"mqtt"), (0xEE, b"own")): ("203.0.113.7:40001", False, None, "mqtt"),
    version_2(0x21, 0x11, V4, over_tls(7, 0, b"pump-7")): ("203.0.113.7:40001", True, "pump-7", ""),
    version_2(0x21, 0x11, V4, over_tls(5, 0, "Pümp".encode())): ("203.0.113.7:40001", True, "Pümp", ""),
    version_2(0x21, 0x11, V4, over_tls(7, 1, b"unverified")): ("203.0.113.7:40001", True, None, ""),
    version_2(0x21, 0x11, V4, over_tls(1, 0, b"not shown")): ("203.0.113.7:40001", True, None, ""),
    version_2(0x21, 0x11, V4, over_tls(6, 0, b"no TLS")): ("203.0.113.7:40001", False, None, ""),
    version_2(0x21, 0x11, V4, over_tls(7, 0, b"a\0b")): ("203.0.113.7:40001", True, None, ""),
    version_2(0x21, 0x11, V4, over_tls(1, 0, None)): ("203.0.113.7:40001", True, None, ""),
    with_checksum(version_2(0x21, 0x11, V4, (3, bytes(4)))): ("203.0.113.7:40001", False, None, ""),
}  # fmt: skip


@pytest.mark.parametrize("header", GOOD)
def test_a_header_is_taken_when_it_is_whole_and_not_a_byte_more(header: bytes) -> None:
    told = ProxyHeader(len(header), *GOOD[header])
    for end in range(1, len(header)):
        assert parse_header(header[:end]) is None
    assert parse_header(header) == told
    assert parse_header(header + b"\x10\x0c\r\nPROXY ") == told


BAD = {
    b"\x10\x0c\x00\x04MQTT": "the first is 0x10",
    b"PROXX": "no PROXY header",
    b"PROXY TCP5 1.1.1.1 2.2.2.2 3 4\r\n": "another form",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 3\r\n": "another form",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 3 4 5\r\n": "another form",
    b"PROXY TCP4 1.1.1.999 2.2.2.2 3 4\r\n": "address is none",
    b"PROXY TCP4 ::1 ::1 3 4\r\n": "another family",
    b"PROXY TCP6 1.1.1.1 2.2.2.2 3 4\r\n": "another family",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 65536 4\r\n": "port is none",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 3 -4\r\n": "port is none",
    b"PROXY TCP4 1.1.1.1 2.2.2.2 03 4\r\n": "port is none",
    b"PROXY UNKNOWN " + b"x" * 100: "more than 107 bytes",
    b"\r\n\r\n\0\r\nQUIX": "no PROXY header",
    SIGNATURE + b"\x11\x11\0\x0c" + V4: "version or command (0x11)",
    version_2(0x22, 0x11, V4): "version or command (0x22)",
    version_2(0x21, 0x12, V4): "family (0x12)",
    version_2(0x21, 0x11, V4[:-1]): "too short",
    version_2(0x21, 0x11, V4 + b"\x01\0"): "cut short in its values",
    version_2(0x21, 0x11, V4 + b"\x01\0\5abcd"): "cut short in its values",
    version_2(0x21, 0x11, V4, (0x20, b"abc")): "says of TLS",
    version_2(0x21, 0x11, V4, over_tls(7, 0, b"\xff")): "no UTF-8",
    version_2(0x21, 0x11, V4, (3, b"1234")): "checksum",
    version_2(0x21, 0x11, V4, (3, b"123")): "checksum",
    SIGNATURE + b"\x21\x11\xff\xff": "65551 bytes, the limit is 4096",
}


@pytest.mark.parametrize("data", BAD)
def test_what_is_no_header_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(BadHeader) as caught:
        parse_header(data)
    assert BAD[data] in str(caught.value)


damaged = st.tuples(st.sampled_from(list(GOOD)), st.binary(max_size=40), st.integers(0, 60)).map(
    lambda drawn: drawn[0][: drawn[2]] + drawn[1] + drawn[0][drawn[2] + len(drawn[1]) :]
)


@given(st.one_of(st.binary(min_size=1, max_size=200), damaged.filter(len)))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_a_header_or_not_yet_or_none(data: bytes) -> None:
    try:
        told = parse_header(data)
    except BadHeader:
        return
    assert told is None or 0 < told.size <= len(data)


def test_the_checksum_is_the_known_one() -> None:
    """RFC 3720, B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    ("networks", "host", "is_believed"),
    [
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.0/8",), "11.1.2.3", False),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("fe80::/10", "192.0.2.1"), "fe80::1%eth0", True),
        (("fe80::/10", "192.0.2.1"), "192.0.2.1", True),
        (("10.0.0.0/8",), None, False),
        (("10.0.0.0/8", "unix"), None, True),
        ((), "127.0.0.1", False),
    ],
)
def test_only_listed_proxies_are_believed(networks: tuple[str, ...], host: str | None, is_believed: bool) -> None:
    assert ProxyOptions(networks=networks).believes(host) == is_believed


def test_a_network_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/40"):
        ProxyOptions(networks=("10.0.0.0/40",))


HEADERS = [
    b"PROXY TCP4 203.0.113.7 127.0.0.1 40001 8883\r\n",
    version_2(0x21, 0x11, V4, over_tls(7, 0, b"pump-7")),
]


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("header", HEADERS, ids=["v1", "v2"])
def test_behind_a_header_is_the_client(site: Site, header: bytes, cut: int) -> None:
    client = Plain(site, site.listen(Transports(proxy=HERE)))
    client.write(header + b"hello", cut)
    assert client.read(5) == b"hello"
    connection = site.links[0].transport
    assert connection.peer == "203.0.113.7:40001"
    assert (connection.certificate and connection.certificate.common_name) == (
        None if header == HEADERS[0] else "pump-7"
    )
    client.write(b"again")
    assert client.read(5) == b"again"
    assert not site.events and not len(site.handshakes)
    client.close()
    site.until(lambda: site.links[0].lost_why)


def test_a_proxy_may_speak_for_itself(site: Site) -> None:
    client = Plain(site, site.listen(Transports(proxy=HERE)))
    client.write(version_2(0x20, 0, b"") + b"x")
    assert client.read(1) == b"x"
    assert site.links[0].transport.peer.startswith("127.0.0.1:")
    client.close()


@pytest.mark.parametrize("cut", [0, 7])
def test_tls_and_websocket_may_be_behind_a_header(
    site: Site, authorities: Authorities, trusting: Trusting, cut: int
) -> None:
    transports = Transports(TlsServer(authorities.mutual()), WebSocketOptions(), HERE)
    client = TlsClient(site, site.listen(transports), trusting("client"))
    client.outgoing.write(HEADERS[1])  # goes out before the hello, with it in one piece
    client.shake_hands(cut)
    client.write(request() + frame(2, b"hello"), cut)
    peer = Peer(client)
    assert peer.head().startswith("HTTP/1.1 101 ")
    assert peer.content(5) == b"hello"
    connection = site.links[0].transport
    assert connection.peer == "203.0.113.7:40001"
    assert connection.certificate.subject.startswith("CN=pump-7,OU=")  # the client's own is believed first
    client.close()


def test_a_websocket_may_be_right_behind_a_header(site: Site) -> None:
    client = Plain(site, site.listen(Transports(websocket=WebSocketOptions(), proxy=HERE)))
    client.write(HEADERS[0] + request() + frame(2, b"hello"))
    peer = Peer(client)
    assert peer.head().startswith("HTTP/1.1 101 ")
    assert peer.content(5) == b"hello"
    assert site.links[0].transport.peer == "203.0.113.7:40001"
    client.close()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x10\x0c\x00\x04MQTT", "no PROXY header before the client's bytes"),
        (b"PROXY TCP9 \r\n", "a PROXY header of another form"),
    ],
)
def test_junk_is_refused_in_one_event(site: Site, data: bytes, why: str) -> None:
    other = Plain(site, site.listen(Transports(proxy=HERE)))
    other.write(HEADERS[0] + b"x")
    assert other.read(1) == b"x"
    client = Plain(site, site.listeners[0].sock.getsockname())
    client.write(data)
    assert site.why().startswith(why)
    assert client.read(1) == b""
    assert len(site.links) == 1
    other.write(b"y")
    assert other.read(1) == b"y"


def test_who_is_no_listed_proxy_is_refused_in_one_event(site: Site) -> None:
    client = Plain(site, site.listen(Transports(proxy=ProxyOptions(networks=("192.0.2.0/24",)))))
    try:
        client.write(HEADERS[0])
    except OSError:
        pass
    assert site.why() == "only proxies may connect here, and this address is not listed as one"
    assert not site.pump.connections and not site.links


def test_a_header_has_its_time(site: Site) -> None:
    client = Plain(site, site.listen(Transports(proxy=ProxyOptions(networks=("unix",))), local()))
    client.write(HEADERS[0][:20])
    site.until(lambda: len(site.handshakes))
    site.turn(2)
    site.now += 10.1
    assert site.why() == "not open within 10 s"
    client.close()


def test_a_proxy_may_come_through_a_unix_socket(site: Site, tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    site.listen(Transports(proxy=ProxyOptions(networks=("unix",))), open_unix_socket(path, 0o600, 10))
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    sock.sendall(HEADERS[0] + b"x")
    site.until(lambda: site.links and site.links[0].got)
    assert site.links[0].transport.peer == "203.0.113.7:40001"
    sock.close()
