"""WebSocket through the pump, over TCP and over TLS. RFC 6455; MQTT 5.0, chapter 6."""

import base64
import hashlib
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from rumq.net.listening.transports import Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.kernels.test_frames import frame
from tests.net.site import Site, TlsClient, cut_back_to_whole_messages, dialled, local

KEY = base64.b64encode(bytes(16)).decode()
ACCEPT = base64.b64encode(hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
BIG = bytes(range(256)) * 4096
OFFERED = 60  # of 250 KB: more than any socket takes


def request(path: str = "/mqtt", protocols: str | None = "mqtt", **headers: str | None) -> bytes:
    """headers: others than usual; None leaves one out"""
    usual: dict[str, str | None] = {
        "Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": protocols,
    }  # fmt: skip
    usual.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"{name}: {value}" for name, value in usual.items() if value is not None]
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode()


class Plain:
    """What TlsClient is, without TLS."""

    def __init__(self, site: Site, address: Any) -> None:
        self._site = site
        self.sock = dialled(address)
        self.sock.setblocking(False)

    def write(self, data: bytes, cut: int = 0) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view[: cut or len(view)]) :]
            except BlockingIOError:
                pass
            if cut or view:
                self._site.turn()

    def read(self, size: int) -> bytes:
        found = b""
        for _ in range(5000):
            if len(found) >= size:
                break
            try:
                more = self.sock.recv(size - len(found))
            except BlockingIOError:
                self._site.turn()
                continue
            if not more:
                break
            found += more
        return found

    def close(self) -> None:
        self.sock.close()


class Peer:
    """A WebSocket of a client, over `under`."""

    def __init__(self, under: Any) -> None:
        self.under = under

    def head(self) -> str:
        found = b""
        while not found.endswith(b"\r\n\r\n"):
            more = self.under.read(1)
            if not more:
                break
            found += more
        return found.decode()

    def frame(self) -> tuple[int, bytes]:
        first, size = self.under.read(2)
        if size >= 126:
            size = int.from_bytes(self.under.read(2 if size == 126 else 8), "big")
        return first & 15, self.under.read(size)

    def content(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            opcode, content = self.frame()
            assert opcode == 2
            found += content
        return found

    def upgraded(self, data: bytes = b"", cut: int = 0) -> "Peer":
        self.under.write(request() + data, cut)
        head = self.head()
        assert head.startswith("HTTP/1.1 101 ")
        assert f"sec-websocket-accept: {ACCEPT}".lower() in head.lower()
        assert "sec-websocket-protocol: mqtt\r\n" in head.lower()
        return self


@pytest.fixture(params=["ws", "wss"])
def peer(request: pytest.FixtureRequest, site: Site, authorities: Authorities, trusting: Trusting) -> Iterator[Peer]:
    options = WebSocketOptions(frame_bytes_max=2 << 20)
    under: Any
    if request.param == "ws":
        under = Plain(site, site.listen(Transports(websocket=options)))
    else:
        server = TlsServer(authorities.mutual(alpn=("http/1.1",)))
        context = trusting("client")
        context.set_alpn_protocols(["h2", "http/1.1"])
        under = TlsClient(site, site.listen(Transports(tls=server, websocket=options)), context)
        under.shake_hands()
        assert under.tls.selected_alpn_protocol() == "http/1.1"
    yield Peer(under)
    under.close()


def refused(site: Site, data: bytes, options: WebSocketOptions | None = None) -> tuple[str, str]:
    """(the answer to a request that is refused, what the operator is told)."""
    under = Plain(site, site.listen(Transports(websocket=options or WebSocketOptions())))
    under.write(data)
    why = site.why()
    said = under.read(10_000)
    under.close()
    assert not site.links
    return said.decode("latin-1"), why


@pytest.mark.parametrize("cut", [0, 1])
def test_bytes_go_both_ways_however_they_are_cut(site: Site, peer: Peer, cut: int) -> None:
    peer.upgraded(cut=cut)
    peer.under.write(frame(2, b"hello ", final=False) + frame(9, b"?") + frame(0, b"there"), cut)
    found, pongs = b"", []
    while len(found) < 11 or not pongs:
        opcode, content = peer.frame()
        if opcode == 10:
            pongs.append(content)
        else:
            found += content
    assert (found, pongs) == (b"hello there", [b"?"])
    assert not site.events
    certificate = site.links[0].transport.certificate
    assert certificate is None or certificate.common_name == "pump-7"


def test_frames_behind_the_request_are_not_lost(site: Site, peer: Peer) -> None:
    peer.upgraded(frame(2, b"at once"))
    assert peer.content(7) == b"at once"


def test_many_bytes_come_back_in_order(site: Site, peer: Peer) -> None:
    peer.upgraded()
    for _ in range(4):
        for at in range(0, len(BIG), 1 << 16):
            peer.under.write(frame(2, BIG[at : at + (1 << 16)]))
            assert peer.content(1 << 16) == BIG[at : at + (1 << 16)]


def test_a_client_that_stops_reading_gets_whole_frames_when_it_goes_on(site: Site, peer: Peer) -> None:
    """Pings are answered meanwhile with one pong, however many they are."""
    peer.upgraded(frame(2, b"x"))
    assert peer.content(1) == b"x"
    connection = site.links[0].transport
    for _ in range(8):
        for at in range(0, len(BIG), 20_000):
            connection.write(BIG[at : at + 20_000])  # several in a frame
        site.turn()
    assert connection.blocked
    for n in range(1000):
        peer.under.write(frame(9, b"%d" % n))
    site.turn(3)
    found, pongs = b"", []
    while len(found) < 8 * len(BIG) or pongs[-1:] != [b"999"]:
        opcode, content = peer.frame()
        found += content if opcode == 2 else b""
        pongs += [content] if opcode == 10 else []
    assert found == BIG * 8
    assert len(pongs) < 10


def test_of_messages_that_can_be_read_again_only_whole_ones_stay(site: Site, peer: Peer) -> None:
    peer.upgraded(frame(2, b"x"))
    assert peer.content(1) == b"x"
    connection = site.links[0].transport
    cut_back_to_whole_messages(site, connection, peer.content, OFFERED)


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (frame(1, b"text"), 1003, "a WebSocket text frame: MQTT goes in binary ones"),
        (b"\x82\x01x", 1002, "a WebSocket frame without a mask"),
        (frame(2, bytes(3 << 20))[:20], 1009, "a WebSocket frame of 3145728 bytes, the limit is 2097152"),
    ],
)
def test_who_breaks_the_rules_is_closed_with_a_code(site: Site, peer: Peer, data: bytes, code: int, why: str) -> None:
    peer.upgraded()
    peer.under.write(data)
    assert peer.frame() == (8, code.to_bytes(2, "big"))
    assert site.until(lambda: site.links[0].lost_why) == why


@pytest.mark.parametrize("content", [b"", b"\x03\xe8", b"\x03\xe9going"])
def test_a_close_is_answered(site: Site, peer: Peer, content: bytes) -> None:
    peer.upgraded()
    peer.under.write(frame(2, b"last") + frame(8, content))
    assert peer.content(4) == b"last"
    assert peer.frame() == (8, content[:2] or b"\x03\xe8")
    site.until(lambda: site.links[0].lost_why)
    assert site.links[0].got == b"last"


def test_our_end_is_a_close(site: Site, peer: Peer) -> None:
    peer.upgraded(frame(2, b"x"))
    peer.content(1)
    site.links[0].transport.write(b"bye")
    site.links[0].transport.close()
    assert peer.content(3) == b"bye"
    assert peer.frame() == (8, b"\x03\xe8")
    assert peer.under.read(1) == b""


@pytest.mark.parametrize(
    ("offered", "chosen"), [("mqttv3.1", "mqttv3.1"), ("mqttv3.1, mqtt", "mqtt"), ("a, mqtt,b", "mqtt")]
)
def test_a_subprotocol_is_chosen(site: Site, offered: str, chosen: str) -> None:
    under = Plain(site, site.listen(Transports(websocket=WebSocketOptions())))
    under.write(request(protocols=offered))
    assert f"sec-websocket-protocol: {chosen}\r\n" in Peer(under).head().lower()
    under.close()


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (b"GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n", 426, "an HTTP request that is no upgrade"),
        (b"POST /mqtt HTTP/1.1\r\nHost: x\r\n\r\n", 426, "an HTTP request that is no upgrade"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, "an HTTP request for /"),
        (request("/other"), 404, "an HTTP request for /other"),
        (request("/mqtt2?a=b"), 404, "an HTTP request for /mqtt2"),
        (request(protocols=None), 400, "a WebSocket without the subprotocol mqtt"),
        (request(protocols="wamp"), 400, "a WebSocket without the subprotocol mqtt"),
        (request(Sec_WebSocket_Version="8"), 426, "another version of WebSocket than 13"),
        (request(Sec_WebSocket_Key=None), 400, "a WebSocket request with a fault"),
        (request(Connection=None), 400, "a WebSocket request with a fault"),
        (request(Host=None), 400, "a WebSocket request with a fault"),
        (b"HELLO\r\n\r\n", 400, "bytes that are no HTTP request"),
        (b"GET /mqtt HTTP/1.1\r\nUpgrade websocket\r\n\r\n", 426, "an HTTP request that is no upgrade"),
        (b"GET /mqtt HTTP/1.1\r\nx: " + b"y" * 9000, 431, "an HTTP header of more bytes than allowed"),
        (
            b"GET /mqtt HTTP/1.1\r\nx: " + b"y" * 9000 + b"\r\n\r\n",
            431,
            "an HTTP header of more bytes than allowed",
        ),
    ],
)
def test_what_is_no_upgrade_is_answered_in_words(site: Site, data: bytes, status: int, why: str) -> None:
    said, told = refused(site, data)
    head, _, body = said.partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ") and "\r\nConnection: " in head
    assert f"Content-Length: {len(body)}" in head and body.endswith(".\n")
    assert told.startswith(why)


@pytest.mark.parametrize(
    ("data", "why", "answer"),
    [
        (b"\x16\x03\x01\x02\x00\x01", "a TLS hello", "no TLS\r\n"),
        (
            bytes.fromhex("100d00044d5154540402003c000161"),
            "an MQTT CONNECT without WebSocket",
            "\x20\x02\0\x03",
        ),
        (b"\r\n\r\n\0\r\nQUIT\n!\0", "a PROXY protocol header", ""),
        (b"\xff", "bytes that are no HTTP request (the first is 0xFF)", ""),
    ],
)
def test_another_protocol_is_named(site: Site, data: bytes, why: str, answer: str) -> None:
    said, told = refused(site, data)
    assert said == answer and told.startswith(why)


@pytest.mark.parametrize(
    ("origin", "is_welcome"),
    [
        (None, True),
        ("https://ok.example", True),
        ("HTTPS://OK.example", True),
        ("https://evil.example", False),
        ("null", False),
    ],
)
def test_only_pages_from_listed_origins_may_come(site: Site, origin: str | None, is_welcome: bool) -> None:
    options = WebSocketOptions(origins=("https://ok.example",))
    data = request(Origin=origin)
    if is_welcome:
        under = Plain(site, site.listen(Transports(websocket=options)))
        under.write(data)
        assert Peer(under).head().startswith("HTTP/1.1 101 ")
        under.close()
    else:
        said, why = refused(site, data, options)
        assert said.startswith("HTTP/1.1 403 ") and why == f"a page from {origin}, which is not in websocket_origins"


def test_without_a_path_any_will_do(site: Site) -> None:
    under = Plain(site, site.listen(Transports(websocket=WebSocketOptions(path=""))))
    under.write(request("/anything/at/all"))
    assert Peer(under).head().startswith("HTTP/1.1 101 ")
    under.close()


@pytest.mark.parametrize(
    ("sent", "seconds", "why"),
    [(0, 2.6, "silent for 2.5 s"), (1, 10.1, "not open within 10 s"), (100, 10.1, "not open within 10 s")],
)
def test_a_handshake_has_its_time(site: Site, sent: int, seconds: float, why: str) -> None:
    under = Plain(site, site.listen(Transports(websocket=WebSocketOptions()), local()))
    under.write(request()[:sent])
    site.until(lambda: len(site.handshakes))
    site.turn(2)
    site.now += seconds
    assert site.why() == why
    assert not site.pump.connections
    under.close()


def test_who_leaves_in_the_middle_is_told_of(site: Site) -> None:
    under = Plain(site, site.listen(Transports(websocket=WebSocketOptions())))
    under.write(request()[:50])
    under.close()
    assert site.why() == "the client closed before the WebSocket handshake was over"


def test_after_tls_faults_are_the_websockets(site: Site, authorities: Authorities, trusting: Trusting) -> None:
    transports = Transports(tls=TlsServer(authorities.options()), websocket=WebSocketOptions())
    client = TlsClient(site, site.listen(transports), trusting())
    client.shake_hands()
    client.write(b"GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.read(13) == b"HTTP/1.1 426 "
    name, fields = site.events[0]
    assert name == "connection.refused" and fields["transport"] == "websocket"
    assert isinstance(client.tls, ssl.SSLObject)
    client.close()
