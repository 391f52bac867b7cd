"""What a broker keeps of what it acknowledged, when it is killed (SIGKILL) under load and started again.

A session that lasts is away; a publisher at QoS 1 has messages in flight all the time. Each message has a number. Knows
no peer by name: each runs with the settings of its module in bench/peers, as for any other load."""

import contextlib
import socket
import time
from collections import Counter
from dataclasses import dataclass

from bench.connections import BenchFault, connect_packet, open_connections, opened, packet, publish_packet, read_exactly
from bench.connections import subscribe as subscribe_to
from bench.load.load import Load
from bench.peers.peer import Broker, Peer, running

LOAD = Load(publishers=1, subscribers=1, qos=1, window=500, lasting=True)
TOPIC, WINDOW = b"kept/x", 500
ACKNOWLEDGED = 10_000  # before the kill
PUBLISH_S, SILENCE_S = 60.0, 3.0
PUBACK, PUBACK_BYTES, PUBLISH = 0x40, 4, 0x30
NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """acknowledged: messages, when it was killed; lost: of them; twice: came more than once; restart_s: to its CONNACK

    durability: what the broker promises; why_not: why there are no numbers"""

    peer: str
    durability: str = ""
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    restart_s: float = 0.0
    why_not: str = ""


def kept(peer: Peer, acknowledged: int = ACKNOWLEDGED) -> Kept:
    """One kill. raises nothing that a broker does: it is told in `why_not`."""
    promise = peer.durability(LOAD)
    if why_not := peer.why_not(LOAD):
        return Kept(peer.name, promise, why_not=why_not)
    try:
        with running(peer, LOAD) as broker:
            return killed_once(peer.name, promise, broker, acknowledged)
    except (BenchFault, OSError) as fault:
        return Kept(peer.name, promise, why_not=str(fault).splitlines()[0])


def killed_once(name: str, promise: str, broker: Broker, wanted: int) -> Kept:
    assert broker.again is not None
    (session,) = open_connections(broker.address, ["kept"], lasting=True)
    subscribe_to(session, TOPIC.decode(), 1)
    session.close()
    (publisher,) = open_connections(broker.address, ["kept-publisher"])
    with contextlib.closing(publisher):
        acknowledged = publish_until(publisher, wanted)
        broker = broker.again()
    found = came_back(broker)
    lost = acknowledged - found.keys()
    twice = sum(1 for count in found.values() if count > 1)
    return Kept(name, promise, len(acknowledged), len(lost), twice, broker.start_s)


def publish_until(publisher: socket.socket, wanted: int) -> set[int]:
    """The numbers that were acknowledged, at least so many, with a window of others in flight. raises: BenchFault"""
    acknowledged: set[int] = set()
    sent, left, until = 0, b"", time.monotonic() + PUBLISH_S
    while len(acknowledged) < wanted:
        room = WINDOW - (sent - len(acknowledged))
        publisher.sendall(b"".join(message(number) for number in range(sent, sent + room)))
        sent += room
        left += publisher.recv(1 << 16)
        whole = len(left) - len(left) % PUBACK_BYTES
        for at in range(0, whole, PUBACK_BYTES):
            if left[at] != PUBACK:
                raise BenchFault(f"the broker answers PUBLISH with {left[at : at + PUBACK_BYTES].hex(' ')}")
            acknowledged.add(number_of(int.from_bytes(left[at + 2 : at + 4], "big"), sent))
        left = left[whole:]
        if time.monotonic() > until:
            raise BenchFault(f"{len(acknowledged)} of {wanted} messages were acknowledged within {PUBLISH_S:g} s")
    return acknowledged


def message(number: int) -> bytes:
    data = bytearray(publish_packet(TOPIC, 1, number.to_bytes(NUMBER_BYTES, "big")))
    data[-NUMBER_BYTES - 2 : -NUMBER_BYTES] = (number % 65_535 + 1).to_bytes(2, "big")
    return bytes(data)


def number_of(packet_id: int, sent: int) -> int:
    """Of the last message with that packet id."""
    last = sent - 1
    return last - (last - (packet_id - 1)) % 65_535


def came_back(broker: Broker) -> Counter[int]:
    """How often each number comes to the session; none where the session is gone. raises: BenchFault, OSError"""
    found: Counter[int] = Counter()
    connection = opened(broker.address)
    with contextlib.closing(connection):
        connection.sendall(connect_packet("kept", lasting=True))
        answer = read_exactly(connection, 4)
        if answer[3]:
            raise BenchFault(f"CONNACK was {answer.hex(' ')}")
        if not answer[2]:
            return found
        connection.settimeout(SILENCE_S)
        buffer = b""
        with contextlib.suppress(TimeoutError):
            while data := connection.recv(1 << 16):
                buffer += data
                buffer, numbers, acknowledgements = cut(buffer)
                found.update(numbers)
                connection.sendall(acknowledgements)
    return found


def cut(buffer: bytes) -> tuple[bytes, list[int], bytes]:
    """What is left of it, the numbers of its whole PUBLISH packets, and their PUBACKs. raises: BenchFault"""
    at, numbers, answers = 0, list[int](), bytearray()
    while len(buffer) - at >= 2:
        size = 2 + buffer[at + 1]  # all packets here are shorter than 128 bytes
        if len(buffer) - at < size:
            break
        if buffer[at] & 0xF0 != PUBLISH:
            raise BenchFault(f"the broker sends {buffer[at : at + size].hex(' ')}")
        answers += packet(PUBACK, buffer[at + size - NUMBER_BYTES - 2 : at + size - NUMBER_BYTES])
        numbers.append(int.from_bytes(buffer[at + size - NUMBER_BYTES : at + size], "big"))
        at += size
    return buffer[at:], numbers, bytes(answers)
