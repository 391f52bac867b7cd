"""The patterns of sending whose cost a message is told, and the clients that send so: in lockstep, plain sockets.

A step is over once its messages are delivered and acknowledged, so that the broker's turns are the same in each step. A
connect and a ping count as a message each.
Knows nothing of how the broker is measured."""

import itertools
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

from bench.connections import Address, BenchFault, open_connections, publish_packet, read_exactly, subscribe
from bench.load.load import FILLER, Load

ANSWER_S = 60.0  # under callgrind a turn takes milliseconds, and the machine may be busy
IDS = 65_535
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"


class Pattern(NamedTuple):
    """pairs: of a publisher and a subscriber; at_once: publishers that send in a step; burst: messages of each in it

    steps_per_s: where CPU time is measured"""

    key: str
    title: str
    qos: int
    durability: str
    pairs: int = 1
    at_once: int = 1
    burst: int = 1
    steps_per_s: int = 1_000
    kind: str = "publish"  # or "connect", "ping": a step is one of these, of a client that does nothing else

    @property
    def messages(self) -> int:
        """Of a step."""
        return self.at_once * self.burst

    @property
    def load(self) -> Load:
        """What a peer is told."""
        return Load(
            publishers=self.pairs, subscribers=self.pairs, qos=self.qos,
            durability="disk" if self.durability == "disk" else "process",
        )  # fmt: skip


PATTERNS = {
    pattern.key: pattern
    for pattern in (
        Pattern("alone-qos1", "QoS 1 alone, process", 1, "process"),
        Pattern("alone-qos1-disk", "QoS 1 alone, disk", 1, "disk", steps_per_s=200),
        Pattern("alone-qos0", "QoS 0 alone", 0, "process"),
        Pattern("burst-8", "QoS 0, 8 of one client", 0, "process", burst=8),
        Pattern("burst-30", "QoS 0, 30 of one client", 0, "process", burst=30, steps_per_s=300),
        Pattern("pairs-50", "QoS 0, 50 pairs, 8 at once", 0, "process", pairs=50, at_once=8, steps_per_s=1_250),
        Pattern("connect", "a connect", 0, "process", steps_per_s=500, kind="connect"),
        Pattern("ping", "a ping", 0, "process", kind="ping"),
    )
}


class Pairs:
    """Publishers with a subscriber each."""

    def __init__(self, address: Address, pattern: Pattern, between: Callable[[], None]) -> None:
        self.pattern, self._between = pattern, between
        names = [f"{pattern.key}-{number}" for number in range(pattern.pairs)]
        self._publishers = open_connections(address, [f"p-{name}" for name in names])
        self._subscribers = open_connections(address, [f"s-{name}" for name in names])
        for connection in (*self._publishers, *self._subscribers):
            connection.settimeout(ANSWER_S)
        self._frames = [publish_packet(f"cost/{name}".encode(), pattern.qos, bytes(20) + FILLER) for name in names]
        for name, connection in zip(names, self._subscribers, strict=True):
            subscribe(connection, f"cost/{name}", pattern.qos)
        self._next = itertools.cycle(range(pattern.pairs))
        self._id = itertools.cycle(range(1, IDS + 1))

    def step(self) -> None:
        """Send a step's messages, and wait until each is delivered and acknowledged. raises: BenchFault, OSError"""
        senders = [next(self._next) for _ in range(self.pattern.at_once)]
        sent = [self._numbered(self._frames[sender]) for sender in senders]
        for sender, data in zip(senders, sent, strict=True):
            self._publishers[sender].sendall(data)
        for sender, data in zip(senders, sent, strict=True):
            got = read_exactly(self._subscribers[sender], len(data))
            if self.pattern.qos:
                if read_exactly(self._publishers[sender], 4 * self.pattern.burst)[:2] != b"\x40\x02":
                    raise BenchFault("expected PUBACK")
                self._subscribers[sender].sendall(self._acks(got, len(self._frames[sender])))
        self._between()

    def close(self) -> None:
        for connection in (*self._publishers, *self._subscribers):
            connection.close()

    def _numbered(self, frame: bytes) -> bytes:
        if not self.pattern.qos:
            return frame * self.pattern.burst
        at = id_at(frame)
        return b"".join(
            frame[:at] + struct.pack(">H", next(self._id)) + frame[at + 2 :] for _ in range(self.pattern.burst)
        )

    def _acks(self, frames: bytes, size: int) -> bytes:
        at = id_at(frames)
        return b"".join(b"\x40\x02" + frames[start + at : start + at + 2] for start in range(0, len(frames), size))


class Connects:
    """Clients that come and stay: CONNECT until CONNACK is a step."""

    def __init__(self, address: Address, pattern: Pattern, between: Callable[[], None]) -> None:
        self._address, self._pattern, self._between = address, pattern, between
        self._connections: list[socket.socket] = []

    def step(self) -> None:
        """raises: BenchFault, OSError"""
        name = f"{self._pattern.key}-{len(self._connections)}"
        self._connections += open_connections(self._address, [name])
        self._between()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class Pings:
    """One client: PINGREQ until PINGRESP is a step."""

    def __init__(self, address: Address, pattern: Pattern, between: Callable[[], None]) -> None:
        (self._connection,), self._between = open_connections(address, [pattern.key]), between
        self._connection.settimeout(ANSWER_S)

    def step(self) -> None:
        """raises: BenchFault, OSError"""
        self._connection.sendall(PINGREQ)
        if read_exactly(self._connection, len(PINGRESP)) != PINGRESP:
            raise BenchFault("expected PINGRESP")
        self._between()

    def close(self) -> None:
        self._connection.close()


KINDS: dict[str, type[Pairs | Connects | Pings]] = {"publish": Pairs, "connect": Connects, "ping": Pings}


def clients_of(address: Address, pattern: Pattern, between: Callable[[], None]) -> Pairs | Connects | Pings:
    """The clients of a pattern, connected. between: called once a step has been answered, before the next one"""
    return KINDS[pattern.kind](address, pattern, between)


def id_at(frame: bytes) -> int:
    """Where the packet id of a PUBLISH shorter than 128 bytes stands. MQTT 3.1.1, 3.3.2"""
    return 4 + int.from_bytes(frame[2:4], "big")
