"""The others, `python -m bench.isolation.others`: a steady, well-behaved load that measures each of its messages.

Open loop: a message is sent when it is due, whatever the broker does, and carries the time just before `send`. Its
arrival is taken twice: when the kernel had it at the subscriber's socket (SO_TIMESTAMPNS, socket(7)), which is the
broker's doing, and when this process received it, which also waits for a core of a machine that others use.
"""

import gc
import select
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence

import msgspec

from bench.connections import BenchFault, read_exactly
from bench.isolation.frames import connect, publish_packet, suback_bytes, subscribe_packet
from bench.isolation.task import PAYLOAD_BYTES, Failed, Lived, OthersTask, Ready, Report

STAMP = struct.Struct(">QQ")  # place in the publisher's sequence, time sent
TIMESPEC = struct.Struct("qq")
SO_TIMESTAMPNS = 35  # asm-generic/socket.h; Python has no name for it
ANCILLARY_BYTES = socket.CMSG_SPACE(TIMESPEC.size)
RECEIVE_BYTES = 1 << 16
FILLER = bytes(range(64, 64 + PAYLOAD_BYTES - STAMP.size))
LAST_S = 5.0
PACKET_IDS = 60_000


class Samples:
    def __init__(self) -> None:
        self.sent, self.socket, self.seen, self.qos = array("Q"), array("Q"), array("Q"), bytearray()


class End(ABC):
    """One of their connections."""

    connection: socket.socket
    is_lost = False

    @abstractmethod
    def receive(self) -> None:
        """Take what its socket has."""


class Publisher(End):
    """One that publishes to its own topic. `receive` counts its acknowledgements."""

    def __init__(self, connection: socket.socket, topic: str, qos: int) -> None:
        self.connection, self.qos = connection, qos
        frame = publish_packet(topic, bytes(PAYLOAD_BYTES), qos)
        self.head = frame[: len(frame) - PAYLOAD_BYTES - 2 * bool(qos)]
        self.sent, self.acknowledged_bytes = 0, 0
        self.unsent = b""

    def send(self) -> None:
        packet_id = (1 + self.sent % PACKET_IDS).to_bytes(2, "big") if self.qos else b""
        frame = self.head + packet_id + STAMP.pack(self.sent, time.time_ns()) + FILLER
        self.sent += 1
        if self.is_lost:
            return
        self.unsent += frame
        self.flush()

    def flush(self) -> None:
        try:
            self.unsent = self.unsent[self.connection.send(self.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self.is_lost = True

    def receive(self) -> None:
        data, _, is_lost = received(self.connection)
        self.acknowledged_bytes += len(data)
        self.is_lost |= is_lost

    @property
    def unacknowledged(self) -> int:
        return self.sent - self.acknowledged_bytes // 4 if self.qos else 0


class Subscriber(End):
    """One that hears one publisher, and acknowledges."""

    def __init__(self, connection: socket.socket, topic: str, qos: int, samples: Samples) -> None:
        self.connection, self.qos, self.samples = connection, qos, samples
        self.size = len(publish_packet(topic, bytes(PAYLOAD_BYTES), qos))
        self.tail, self.received, self.next, self.wrong = b"", 0, 0, 0
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def receive(self) -> None:
        data, socket_ns, is_lost = received(self.connection)
        seen_ns = time.time_ns()
        self.is_lost |= is_lost
        data = self.tail + data
        whole = len(data) // self.size
        samples, acknowledgements = self.samples, b""
        for at in range(0, whole * self.size, self.size):
            if data[at] & 0xF6 != 0x30 | self.qos << 1:
                raise BenchFault(f"the others got what they did not ask for: {data[at : at + 16].hex(' ')}")
            payload = at + self.size - PAYLOAD_BYTES
            place, sent_ns = STAMP.unpack_from(data, payload)
            if place < self.next:
                self.wrong += 1
            else:
                self.received += 1
                self.next = place + 1
                samples.sent.append(sent_ns)
                samples.socket.append(max(0, (socket_ns or seen_ns) - sent_ns))
                samples.seen.append(max(0, seen_ns - sent_ns))
                samples.qos.append(self.qos)
            if self.qos:
                acknowledgements += b"\x40\x02" + data[payload - 2 : payload]
        self.tail = data[whole * self.size :]
        if acknowledgements and not self.is_lost:
            try:
                self.connection.send(acknowledgements)
            except OSError:
                self.is_lost = True


def ends_of(publishers: Sequence[Publisher], subscribers: Sequence[Subscriber]) -> list[End]:
    return [*publishers, *subscribers]


def received(connection: socket.socket) -> tuple[bytes, int, bool]:
    """(bytes, when the kernel had the last of them or 0, whether the connection is over)"""
    try:
        data, ancillary, _, _ = connection.recvmsg(RECEIVE_BYTES, ANCILLARY_BYTES)
    except BlockingIOError:
        return b"", 0, False
    except OSError:
        return b"", 0, True
    when_ns = 0
    for _, kind, value in ancillary:
        if kind == SO_TIMESTAMPNS:
            seconds, ns = TIMESPEC.unpack(value)
            when_ns = seconds * 10**9 + ns
    return data, when_ns, not data


def live(publishers: Sequence[Publisher], subscribers: Sequence[Subscriber], rate: int, seconds: float) -> int:
    """Publish for so long, each in turn, and take what comes until all has; returns how late the latest was, in ns."""
    epoll = select.epoll()
    ends: dict[int, End] = {one.connection.fileno(): one for one in ends_of(publishers, subscribers)}
    for descriptor in ends:
        epoll.register(descriptor, select.EPOLLIN)
    step_ns, late_ns_max, turn = 10**9 // rate, 0, 0
    due_ns = time.monotonic_ns()
    until_ns = due_ns + int(seconds * 1e9)
    last_ns = until_ns + int(LAST_S * 1e9)
    while True:
        now_ns = time.monotonic_ns()
        while due_ns <= now_ns and due_ns < until_ns:
            late_ns_max = max(late_ns_max, now_ns - due_ns)
            publishers[turn % len(publishers)].send()
            turn, due_ns = turn + 1, due_ns + step_ns
        if due_ns >= until_ns:
            complete = all(s.received == p.sent for p, s in zip(publishers, subscribers, strict=True))
            if now_ns > last_ns or (complete and not any(p.unacknowledged > 0 for p in publishers)):
                return late_ns_max
        for descriptor, event in epoll.poll(max(0.0, (due_ns - now_ns) / 1e9) if due_ns < until_ns else 0.01):
            one = ends[descriptor]
            one.receive()
            if one.is_lost or event & (select.EPOLLHUP | select.EPOLLERR):
                one.is_lost = True
                epoll.unregister(descriptor)
        for publisher in publishers:
            if publisher.unsent and not publisher.is_lost:
                publisher.flush()


def run(task: OthersTask) -> None:
    samples = Samples()
    qos = [int(number < task.qos1) for number in range(len(task.topics))]
    subscribers = []
    for client_id, topic, level in zip(task.subscriber_ids, task.topics, qos, strict=True):
        connection = connect(task.address, client_id)
        connection.sendall(subscribe_packet([topic], level))
        read_exactly(connection, suback_bytes(1))
        subscribers.append(Subscriber(connection, topic, level, samples))
    publishers = [
        Publisher(connect(task.address, client_id), topic, level)
        for client_id, topic, level in zip(task.publisher_ids, task.topics, qos, strict=True)
    ]
    for one in ends_of(publishers, subscribers):
        one.connection.setblocking(False)
    gc.disable()
    say(Ready())
    if not sys.stdin.readline():
        return
    began_ns = time.time_ns()
    late_ns_max = live(publishers, subscribers, task.rate, task.seconds)
    say(
        Lived(
            began_ns=began_ns,
            sent_ns=samples.sent.tobytes(),
            socket_ns=samples.socket.tobytes(),
            seen_ns=samples.seen.tobytes(),
            qos=bytes(samples.qos),
            sent=sum(one.sent for one in publishers),
            lost=sum(p.sent - s.received for p, s in zip(publishers, subscribers, strict=True)),
            twice_or_out_of_order=sum(one.wrong for one in subscribers),
            unacknowledged=sum(one.unacknowledged for one in publishers),
            disconnected=sum(one.is_lost for one in ends_of(publishers, subscribers)),
            late_ns_max=late_ns_max,
            cpu_s=time.process_time(),
        )
    )
    sys.stdin.readline()


def say(report: Report) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        run(msgspec.json.decode(sys.stdin.readline(), type=OthersTask))
    except (BenchFault, OSError) as fault:
        say(Failed(why=f"the others: {fault}"))
        sys.exit(1)
