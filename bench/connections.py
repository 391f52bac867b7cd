"""Open a worker's connections: CONNECT, CONNACK, SUBSCRIBE, SUBACK. MQTT 3.1.1, 3.1, 3.2, 3.8 and 3.9.

Encodes by itself what little it needs: a fault in rumq's own packets must not be mirrored here.
"""

import resource
import select
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence

from bench.secure import secured

Address = tuple[str, int]
WAVE = 100
ANSWER_S = 30.0
KEEP_ALIVE_S = 3600
CONNACK = b"\x20\x02\x00\x00"


class BenchFault(Exception):
    """The broker or the bench's own set-up did not do what the measurement needs."""


def allow_files() -> None:
    """Raise the limit of open files as far as it goes, for this process and those it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def open_connections(
    address: Address,
    client_ids: Sequence[str],
    *,
    lasting: bool = False,
    keep_alive_s: int = KEEP_ALIVE_S,
) -> list[socket.socket]:
    """Connect one socket for each client id, `WAVE` at a time. raises: BenchFault, OSError

    lasting: with sessions that outlive the connection"""
    return [one for wave in waves(client_ids) for one in open_wave(address, wave, lasting, keep_alive_s)]


def waves(client_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(client_ids), WAVE):
        yield client_ids[start : start + WAVE]


def open_wave(address: Address, client_ids: Iterable[str], lasting: bool, keep_alive_s: int) -> list[socket.socket]:
    wave = []
    for client_id in client_ids:
        connection = opened(address)
        connection.sendall(connect_packet(client_id, lasting, keep_alive_s))
        wave.append(connection)
    for connection in wave:
        answer = read_exactly(connection, 4)
        if answer != CONNACK:
            raise BenchFault(f"CONNACK was {answer.hex(' ')}")
    return wave


def opened(address: Address) -> socket.socket:
    """A connection on which nothing is sent yet. raises: OSError"""
    connection = socket.create_connection(address, timeout=ANSWER_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A reset at close leaves no TIME_WAIT behind: ten thousand would starve the next run of ports.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return secured(connection, address[0])


def ready(epoll: select.epoll, wait_ns: int) -> list[tuple[int, int]]:
    """The sockets that are ready within `wait_ns`; to the microsecond, where epoll's own wait is in milliseconds."""
    if wait_ns > 0:
        select.select([epoll], [], [], wait_ns / 1e9)
    return epoll.poll(0)


def subscribe(connection: socket.socket, topic_filter: str, qos: int) -> None:
    connection.sendall(subscribe_packet(topic_filter, qos))
    answer = read_exactly(connection, 5)
    if answer[:4] != b"\x90\x03\x00\x01" or answer[4] != qos:
        raise BenchFault(f"SUBACK to {topic_filter} at QoS {qos} was {answer.hex(' ')}")


def read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise BenchFault("the broker closed a connection that had just been opened")
        data += more
    return data


def connect_packet(client_id: str, lasting: bool = False, keep_alive_s: int = KEEP_ALIVE_S) -> bytes:
    """MQTT 3.1.1, clean session unless `lasting`."""
    flags = b"\x00" if lasting else b"\x02"
    return packet(0x10, text("MQTT") + b"\x04" + flags + keep_alive_s.to_bytes(2, "big") + text(client_id))


def subscribe_packet(topic_filter: str, qos: int) -> bytes:
    return packet(0x82, b"\x00\x01" + text(topic_filter) + bytes([qos]))


def publish_packet(topic: bytes, qos: int, payload: bytes) -> bytes:
    """With packet id 0 where QoS asks for one: the kernel writes the real one."""
    packet_id = b"\0\0" if qos else b""
    return packet(0x30 | qos << 1, len(topic).to_bytes(2, "big") + topic + packet_id + payload)


def packet(first_byte: int, body: bytes) -> bytes:
    size, length = len(body), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return bytes([first_byte]) + bytes(length) + body


def text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(2, "big") + data
