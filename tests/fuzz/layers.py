"""Everything between a listener and the session, in any combination, through the pump of a whole shard.

A PROXY header, TLS, WebSocket, a mount point: what each parser refuses is tried elsewhere; here nothing that comes
through them may raise out of a turn, or through the guard that ends one client for a fault of ours."""

import ssl
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from rumq.net.lingering_close import LingeringClose
from rumq.net.listening.proxy_protocol import ProxyOptions
from rumq.net.listening.transports import ConnectionSetup, MountOptions, Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.conformance import wire
from tests.conformance.wire import Kind, Will
from tests.fuzz.kernels.mutate import Mutator
from tests.fuzz.session import OUTBOX_BYTES, Sessions, Stranger
from tests.net.authorities import Authorities
from tests.net.kernels.test_frames import frame
from tests.net.listening.test_proxy_protocol import GOOD
from tests.net.websocket.test_websocket import request
from tests.simulation.machine import Machine
from tests.simulation.network import Stream

HEADERS = list(GOOD)
POINTS = ("a/", "plant/é/", "m" * 300 + "/")
LONGEST = b"x" * 65_535
PACKET_BYTES_MAX = 1 << 18
BLOCKED_MAX = 20
MIXED_UP = (0, 0, 0, 1)  # how often what a layer says is changed on its way


class Layers(Sessions):
    name = "layers"
    inputs = 60

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        authorities = Authorities(Path(self._folder.name))
        self._tls = TlsServer(authorities.options())
        self._context = ssl.create_default_context(cafile=authorities.path("ca"))
        self._headers, self._requests = Mutator(HEADERS, False), Mutator([request()], False)

    def close(self) -> None:
        self._folder.cleanup()

    def _input(self, random: Random) -> bytes:
        data = super()._input(random)
        return random.choice(too_long()) if random.randrange(8) == 0 else data

    def _stranger(self, machine: Machine, data: bytes, policy: ListenerPolicy, random: Random) -> Stranger:
        transports = Transports(
            self._tls if random.randrange(4) == 0 else None,
            WebSocketOptions(frame_bytes_max=PACKET_BYTES_MAX) if random.randrange(2) else None,
            ProxyOptions(networks=("unix",)) if random.randrange(3) == 0 else None,
            MountOptions(random.choice(POINTS), PACKET_BYTES_MAX) if random.randrange(2) else None,
        )
        if transports.websocket is not None:
            data = self._mixed_up(random, self._requests, request()) + in_frames(random, data)
        before = b""
        if transports.proxy is not None:
            before = self._mixed_up(random, self._headers, random.choice(HEADERS))
        if transports.tls is None:
            return Covered(machine, before + data, policy, self.counts, transports)
        return Sealed(machine, before, data, policy, self.counts, transports, self._context)

    @staticmethod
    def _mixed_up(random: Random, mutator: Mutator, good: bytes) -> bytes:
        if not random.choice(MIXED_UP):
            return good
        return bytes(mutator.inputs(1, random.getrandbits(64), 1)[0])


def too_long() -> list[bytes]:
    """What has no room for a mount point, behind what a client says first."""
    connect = wire.connect("longest", 5)
    names = len(LONGEST).to_bytes(2, "big") + LONGEST
    many = b"".join(len(name).to_bytes(2, "big") + name + b"\0" for name in [b"#", *[b"a/%d" % n for n in range(99)]])
    return [
        wire.connect("longest", 5, will=Will(LONGEST.decode(), b"")),
        wire.connect("longest", 4, will=Will(LONGEST.decode(), b"")),
        connect + wire.frame(Kind.SUBSCRIBE << 4 | 2, b"\0\1\0" + names + b"\0"),
        connect + wire.frame(Kind.UNSUBSCRIBE << 4 | 2, b"\0\1\0" + names),
        connect + wire.frame(Kind.PUBLISH << 4, names + b"\0"),
        connect + wire.frame(Kind.SUBSCRIBE << 4 | 2, b"\0\1\0" + many + b"\xff\xffx"),
        connect + wire.frame(Kind.SUBSCRIBE << 4 | 2, b"\0\1\0" + b"\0\1a\0" * 20_000),
    ]


def in_frames(random: Random, data: bytes) -> bytes:
    """As WebSocket frames, some of them wrong."""
    out, at = b"", 0
    while at < len(data):
        size = random.choice((1, 20, 300, len(data)))
        kind = 2 if random.randrange(16) else random.choice((0, 1, 8, 9, 10, 11))
        some = data[at : at + size] if kind < 8 else data[at : at + min(size, 125)]
        out += frame(kind, some)
        at += len(some)
    return out


class Covered(Stranger):
    """One whose bytes go through layers, all of them ready."""

    def __init__(
        self, machine: Machine, data: bytes, policy: ListenerPolicy, counts: Any, transports: Transports
    ) -> None:
        self._transports = transports
        self._blocked = 0
        super().__init__(machine, data, policy, counts)

    def _accept(self, shard: Any, theirs: Stream, policy: ListenerPolicy) -> None:
        machine, pump = self._machine, shard.pump
        if pump.lingering is None:
            pump.lingering = LingeringClose(pump, later=shard.parts.timers.later, clock=lambda: machine.monotonic)
            shard.handshakes = TransportHandshakes(
                pump, later=shard.parts.timers.later, event=self._told, clock=lambda: machine.monotonic
            )
        welcome = lambda connection: shard.parts.clients.broker.welcome(connection, policy)  # noqa: E731
        setup = ConnectionSetup(self._transports, shard.handshakes, pump, OUTBOX_BYTES, welcome)
        setup.accept(theirs, "192.0.2.1:7", None)  # type: ignore[arg-type]

    def say(self, random: Random) -> None:
        """As much as the network takes, which is less than the longest packet."""
        size = random.choice((1, 7, 300, len(self._left), len(self._left)))
        try:
            sent = self._ours.send(self._left[:size])
        except BlockingIOError:
            self._machine.run(50)
            self._blocked += 1
            sent = 0 if self._blocked < BLOCKED_MAX else len(self._left)
        except BrokenPipeError:
            sent = len(self._left)
        self._left = self._left[sent:]

    def _told(self, name: str, **_: Any) -> None:
        self._counts[name] += 1

    def _read(self, stream: Stream) -> None:
        data = bytes(stream.here)
        if data:
            stream.recv(len(data))
            self._heard += 1
            self._hear(data)

    def _hear(self, data: bytes) -> None: ...


class Sealed(Covered):
    """One that speaks TLS. Now and then a record of its is changed."""

    def __init__(
        self, machine: Machine, before: bytes, data: bytes, policy: ListenerPolicy, counts: Any,
        transports: Transports,
        context: ssl.SSLContext,
    ) -> None:  # fmt: skip
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._is_open = False
        super().__init__(machine, data, policy, counts, transports)
        self._send(before)
        self._hear(b"")

    def _hear(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
                self._counts["TLS open"] += 1
            while self._tls.read(4096):
                pass
        except ssl.SSLError:
            pass  # it wants more, or it is over
        self._send(self._outgoing.read())

    def say(self, random: Random) -> None:
        if not self._is_open and self._left and random.randrange(4):
            return
        some, self._left = self._left[:300], self._left[300:]
        if self._is_open:
            try:
                self._tls.write(some or b"\xc0\x00")
                some = self._outgoing.read()
            except ssl.SSLError:
                some = self._outgoing.read()
        if some and random.randrange(20) == 0:
            some = some[:-1] + bytes([some[-1] ^ 1])
        self._send(some)

    def _send(self, data: bytes) -> None:
        if data:
            try:
                self._ours.send(data)
            except (BlockingIOError, BrokenPipeError):
                self._left = b""
