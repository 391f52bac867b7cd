"""The subscribing worker's loop: receive in large pieces, check every message, answer, count.

Refuses to know who published, but for the shared counters of how much.
"""

import select
import socket
import time
from array import array
from collections.abc import Sequence

from bench.connections import BenchFault
from bench.kernels.check import Check
from bench.load.load import FILLER, ROUND_PUBLISHERS, Heard, Load, Round
from bench.progress import Progress

IN, OUT = select.EPOLLIN, select.EPOLLOUT
RECEIVE_BYTES = 256 * 1024
IDLE_S = 0.02
# After a small catch in a flood. On one machine a broker pays for waking its subscribers, across a network it
# does not: no longer woken for each message, mosquitto and NATS deliver 1.2 to 1.8 times as much.
NAP_BELOW, NAP_S = 1_000, 0.0001
# Publishers have ended and nothing more arrives: what is missing now is lost.
QUIET_S = 1.0
# A broker that goes on delivering long after the round is over is cut off here.
OVERTIME_S = 60.0


class Subscriber:
    """One subscribed connection and what it has got."""

    __slots__ = ("check", "connection", "heard", "is_shared", "out", "tail")

    def __init__(self, connection: socket.socket, load: Load, number: int, latencies: "array[int]") -> None:
        self.connection = connection
        self.heard = load.heard(number)
        self.is_shared = load.spread == "shared"
        names = load.topic_names(self.heard)
        self.check = Check(
            array("Q", bytes(8 * len(self.heard))), names, load.topic_bytes, load.topics, FILLER, latencies
        )
        self.tail = b""
        self.out = b""

    def begin(self, round_number: int) -> None:
        self.check.begin(round_number * ROUND_PUBLISHERS + self.heard.start)

    def receive(self, buffer: memoryview, replies: bytearray, timed: bool) -> int:
        """Receive once; return by how many messages the position moved."""
        kept = len(self.tail)
        if kept:
            buffer[:kept] = self.tail
        try:
            got = self.connection.recv_into(buffer[kept:])
        except BlockingIOError:
            return 0
        if not got:
            raise BenchFault(f"the broker closed a subscriber's connection (of publishers {self.heard})")
        check = self.check
        before = self.position
        end = kept + got
        taken = check.take(buffer, end, replies, 0, time.monotonic_ns() if timed else 0)
        self.tail = bytes(buffer[taken:end]) if taken < end else b""
        if check.out_end:
            self.reply(bytes(memoryview(replies)[: check.out_end]))
        return self.position - before

    @property
    def position(self) -> int:
        """How far it has come; of a shared subscription what it skipped went to others."""
        return int(self.check.received - self.check.late if self.is_shared else self.check.position)

    def reply(self, data: bytes) -> None:
        self.out += data
        try:
            self.out = self.out[self.connection.send(self.out) :]
        except BlockingIOError:
            pass


def run_round(
    subscribers: Sequence[Subscriber],
    epoll: select.epoll,
    load: Load,
    now: Round,
    progress: Progress,
    slot: int,
) -> Heard:
    """Listen until all of the round has arrived, or no more of it comes. `begin` comes before."""
    by_descriptor = {subscriber.connection.fileno(): subscriber for subscriber in subscribers}
    # Replies are never longer than what they answer.
    buffer, replies = memoryview(bytearray(RECEIVE_BYTES)), bytearray(RECEIVE_BYTES + 4)
    position, target = 0, None
    cpu_s = time.process_time()
    last_at, stop_at = time.monotonic(), time.monotonic() + now.seconds_max + OVERTIME_S
    ended_ns = time.monotonic_ns()
    while target is None or position < target:
        events = epoll.poll(IDLE_S)
        moved = 0
        for descriptor, event in events:
            subscriber = by_descriptor[descriptor]
            if event & ~OUT:
                moved += subscriber.receive(buffer, replies, load.latency)
            if event & OUT:
                subscriber.reply(b"")
            wanted = IN | OUT if subscriber.out else IN
            if subscriber.out or event & OUT:
                epoll.modify(subscriber.connection, wanted)
        if moved:
            position += moved
            progress.position[slot] = position
            ended_ns = time.monotonic_ns()
            last_at = ended_ns / 1e9
            if moved < NAP_BELOW and not load.rate and not load.killed:
                time.sleep(NAP_S)
        if target is None and all(progress.ended):
            target = wanted_of(subscribers, progress)
            last_at = max(last_at, time.monotonic())
        if not moved and target is not None and time.monotonic() - last_at > QUIET_S:
            break
        if not events and time.monotonic() > stop_at:
            break
    return heard(subscribers, progress, ended_ns, time.process_time() - cpu_s)


def wanted_of(subscribers: Sequence[Subscriber], progress: Progress) -> int:
    """Messages that are to arrive here, all connections together."""
    if subscribers[0].is_shared:
        return sum(progress.sent)
    return sum(progress.sent[number] for subscriber in subscribers for number in subscriber.heard)


def heard(subscribers: Sequence[Subscriber], progress: Progress, ended_ns: int, cpu_s: float) -> Heard:
    checks = [subscriber.check for subscriber in subscribers]
    sent = wanted_of(subscribers, progress)
    received, late = sum(check.received for check in checks), sum(check.late for check in checks)
    # Of a shared subscription what came to two subscribers came twice.
    late += max(0, received - late - sent)
    return Heard(
        ended_ns=ended_ns,
        received=received,
        missing=max(0, sent - (received - late)),
        late=late,
        corrupt=sum(check.corrupt for check in checks),
        stray=sum(check.stray for check in checks),
        redelivered=sum(check.redelivered for check in checks),
        cpu_s=cpu_s,
        latencies_ns=b"",
    )
