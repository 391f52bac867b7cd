"""WebSocket: frames by the kernel, whole and in pieces; requests to become one; and both through a stream."""

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

from rumq.net.kernels.frames import Incoming
from rumq.net.transport.transport_handshake import TransportHandshake
from rumq.net.websocket.websocket import WebSocketStream
from rumq.net.websocket.websocket_handshake import WebSocketOptions, answer
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.kernels.mutate import Mutator
from tests.net.kernels.test_frames import frame
from tests.net.websocket.test_websocket import request

FRAME_BYTES_MAX = 1 << 16
OPTIONS = WebSocketOptions(frame_bytes_max=FRAME_BYTES_MAX, origins=("https://ok.example",))
CODES = {1002, 1003, 1007, 1009}
STATUSES = {b"101", b"400", b"403", b"404", b"426", b"431"}
FRAMES = [
    *(frame(2, bytes(range(size & 255)) * (1 + size // 256)) for size in (0, 1, 3, 8, 125, 126, 300, 1000)),
    frame(2, b"a", final=False), frame(0, b"b", final=False), frame(0, b"c"), frame(9, b"?"), frame(10, b""),
    frame(8, b""), frame(8, b"\x03\xe8bye"), frame(1, b"text"), frame(2, b"x" * 200, first=0x40), frame(9, bytes(125)),
    b"\x82\xff" + (70000).to_bytes(8, "big") + b"abcd", b"\x82\xfe\x00\x7e" + bytes(130), b"\x82\x01x",
]  # fmt: skip
REQUESTS = [
    request(), request("/mqtt?x=y"), request("/other"), request(protocols="mqttv3.1, mqtt"), request(protocols=None),
    request(Origin="https://ok.example"), request(Origin="null"), request(Connection="keep-alive, Upgrade"),
    request(Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits"), request(Cookie="a=b; c=d"),
    request(Transfer_Encoding="chunked"), request(Content_Length="5") + b"hello", request(Expect="100-continue"),
    request(Sec_WebSocket_Version="8"), request(Upgrade="h2c"), b"GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /mqtt HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /mqtt HTTP/1.0\r\n\r\n", b"HELLO\r\n\r\n",
    request(Origin="http://127.0.0.1:1", Host="127.0.0.1:1"), request(Origin="http://[::1]", Host="[::1"),
    request(X="\xff" * 20).decode().encode("latin-1"), request(Host="[::1]:80"), request(Content_Length="-1"),
]  # fmt: skip


class WebSockets(Target):
    name = "websocket"
    inputs = 600

    def __init__(self) -> None:
        super().__init__()
        self._frames, self._requests = Mutator(FRAMES, False), Mutator(REQUESTS, False)

    def run(self, seed: int) -> Counter[str]:
        random = Random(seed)
        self.counts: Counter[str] = Counter()
        kind = random.randrange(8)
        if kind == 0:
            for data in self.each(self._requests.inputs(self.inputs, random.getrandbits(64), 1)):
                self._ask(data)
            return self.counts
        made = self._frames.inputs(self.inputs, random.getrandbits(64), random.choice((1, 3, 6)))
        if kind == 1:
            heads = self._requests.inputs(self.inputs, random.getrandbits(64), 1)
            for data in self.each(
                [(random.choice((request(), head)), some) for head, some in zip(heads, made, strict=True)]
            ):
                self._stream(random, *data)
            return self.counts
        for data in self.each(made):
            self._pieces(random, data)
        return self.counts

    # Frames

    def _pieces(self, random: Random, data: bytes) -> None:
        """The same bytes come out and the same is said of them, however they are cut. raises: Wrong"""
        incoming = Incoming(FRAME_BYTES_MAX)
        whole = self._taken(incoming, data)
        other, found, at = Incoming(FRAME_BYTES_MAX), b"", 0
        while at < len(data):
            size = random.choice((1, 1, 2, 5, 17, 200))
            found += self._taken(other, data[at : at + size])
            at += size
            if random.randrange(8) == 0:
                state = other.state()
                ended = other.fault, other.why
                if not other.fault:
                    other = Incoming(FRAME_BYTES_MAX)
                    other.restore(state)
                assert (other.fault, other.why) == ended
        said = (incoming.fault, incoming.why, incoming.closed, incoming.ping)
        if found != whole or said != (other.fault, other.why, other.closed, other.ping):
            raise Wrong(f"{whole[:50]!r}, {said} at once; {found[:50]!r}, {other.fault}, {other.why} in pieces")
        if incoming.fault and (incoming.fault not in CODES or not incoming.why):
            raise Wrong(f"{said}")
        self.counts[f"closed with {incoming.fault}" if incoming.fault else "closed" if incoming.closed else "open"] += 1

    def _taken(self, incoming: Any, data: bytes) -> bytes:
        buffer = bytearray(data + b"behind it" if self.tail else data)
        count = incoming.take(buffer, len(data))
        if not 0 <= count <= len(data):
            raise Wrong(f"{count} bytes out of {len(data)}")
        if self.tail and buffer[len(data) :] != b"behind it":
            raise Wrong("bytes behind the end were changed")
        if incoming.ping is not None and len(incoming.ping) > 125:
            raise Wrong(f"a PING of {len(incoming.ping)} bytes")
        return bytes(buffer[:count])

    # Requests

    def _ask(self, head: bytes) -> None:
        found = answer(head, OPTIONS)
        status = found.data[9:12]
        if not found.data.startswith(b"HTTP/1.1 ") or status not in STATUSES or (status == b"101") != (not found.why):
            raise Wrong(f"{found}")
        above, _, body = found.data.partition(b"\r\n\r\n")
        if found.why and f"Content-Length: {len(body)}\r\n".encode() not in above + b"\r\n":
            raise Wrong(f"{found}")
        self.counts["answered " + status.decode()] += 1

    def _stream(self, random: Random, head: bytes, data: bytes) -> None:
        """A request and frames behind it, as a socket gives them."""
        below = Below(head + data, random)
        owner = Owner()
        stream = WebSocketStream(OPTIONS, below, owner)  # type: ignore[arg-type]
        view, out, ended = memoryview(bytearray(256)), 0, ""
        for _ in range(4 * len(below.data) + 50):
            try:
                count = stream.recv_into(view)
            except BlockingIOError:
                if below.at >= len(below.data):
                    break
                continue
            except OSError as fault:
                ended = "refused" if fault.strerror else ""
                if not fault.strerror:
                    raise Wrong("an end without a word") from fault
                break
            if not 0 <= count <= len(view) or (count and not stream.is_open):
                raise Wrong(f"{count} bytes of a stream that is {'open' if stream.is_open else 'not open'}")
            out += count
            if not count:
                ended = "closed"
                break
        if out > len(data) + len(head) or len(below.sent) > 8192 + 140 * len(below.data):
            raise Wrong(f"{out} bytes came out, {len(below.sent)} went back")
        self.counts["stream " + (ended or ("open" if stream.is_open else "waits"))] += 1


class Below:
    """What a WebSocket lies on, with the bytes of a client in it."""

    is_open, can_move = True, False

    def __init__(self, data: bytes, random: Random) -> None:
        self.data, self.at, self.sent, self._random = data, 0, bytearray(), random

    def recv_into(self, view: Any) -> int:
        if self.at >= len(self.data):
            raise BlockingIOError
        some = self.data[self.at : self.at + self._random.choice((1, 3, 50, 256))]
        view[: len(some)] = some
        self.at += len(some)
        return len(some)

    def put(self, buffers: list[Any], size: int) -> None:
        self.sent += b"".join(buffers)

    def push(self) -> bool:
        return True

    def pending(self) -> bool:
        return False


class Owner:
    """In the place of `rumq.net.transport.stream_connection.StreamConnection`."""

    ended = blocked = False

    def __init__(self) -> None:
        self.pump = SimpleNamespace(
            read_next_turn=lambda owner: None,
            pending_logins=SimpleNamespace(keep_bytes=lambda owner, size: True),
        )
        self.handshake = TransportHandshake(
            SimpleNamespace(finish=lambda handshake: None, progress=lambda handshake, first: None),
            self,
            "websocket",
        )  # type: ignore[arg-type]

    def opened(self, stream: Any) -> None:
        self.handshake.finish()
