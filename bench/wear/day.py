"""A day of lone messages, computed: one whole shard with clocks that are numbers and a disk that nobody waits for.

Turns, sessions, journal, group commit and retention are the broker's; there is no socket and no thread."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.connections import connect_packet, publish_packet, subscribe_packet
from bench.wear.counted_files import CountedFiles
from bench.wear.lone import PUBACK, TOPIC, payload
from bench.wear.parts import segments, taken
from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.write.segment_writer import Flush
from rumq.mqtt.topics import matches
from rumq.net.pending_logins import PendingLogins
from rumq.process.shard.shard_store import STATE_SEGMENT_BYTES
from rumq.session.ports.transport import Transport
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.worker_threads import Done, Pool

DAY_MESSAGES = 864_000
PACK_BYTES_PER_SECOND = 1 << 24  # as by default
BEGIN_US = 1_700_000_000_000_000
SOONEST = 0.0001  # seconds until a deadline that has passed is looked at again
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Day:
    """Bytes by part. written: to the disk; running, stopped: of the disk, two seconds after the last message and after
    a stop; segments: files of the log, then"""

    messages: int
    seconds: float
    written: Counter[str]
    running: Counter[str]
    stopped: Counter[str]
    segments: int


class AtOnce(Pool):
    """In the place of threads: a job is done when it is submitted, and reported in the next turn."""

    def __init__(self) -> None:
        self.fd, self.pending = -1, 0
        self._finished: deque[tuple[Done, Any, BaseException | None]] = deque()

    def maybe_write(self, flush: Flush) -> bool:
        flush.run()
        return True

    def flush(self, flush: Flush, done: Done, lane: int = 0) -> None:
        self.submit(flush.run, done)

    def submit(self, job: Callable[[], T], done: Callable[[T, BaseException | None], None], lane: int = 0) -> None:
        self.pending += 1
        self._finished.append((done, job(), None))

    def finish(self) -> None:
        while self._finished:
            done, result, fault = self._finished.popleft()
            self.pending -= 1
            done(result, fault)

    def stop(self) -> None: ...


class NoPump(ShardTotals):
    """Turns are made by hand."""

    __slots__ = ("bus_bytes_out", "pending_logins", "turns")

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self.bus_bytes_out = self.turns = 0
        self.pending_logins = PendingLogins(lambda connection, why: None, lambda: 0)

    def watch(self, fd: int, callback: object, mask: int = 0) -> None: ...


class Client(Transport):
    """A connection of the shard. heard: what was sent to it and not taken yet"""

    peer = "bench"

    def __init__(self, shard: Shard) -> None:
        self.room, self.refused, self.is_quiet = 1 << 20, False, False
        self.bytes_in = self.bytes_out = 0
        self.tap: Any = None
        self.unparsed: bytearray | None = None
        self.heard = bytearray()
        self._shard = shard
        self.link = shard.parts.clients.broker.welcome(self)

    def say(self, packet: bytes | bytearray) -> None:
        self.link.receive(bytearray(packet), 0, len(packet))
        self._shard.settle()

    def take(self) -> bytes:
        heard, self.heard = bytes(self.heard), bytearray()
        return heard

    def write(self, data: Any, owner: object = None) -> None:
        self.heard += data

    def waits(self) -> bool:
        return False

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...


class Shard:
    """now: monotonic seconds; the wall clock goes with it"""

    def __init__(self, files: CountedFiles, root: str) -> None:
        self.now = 1000.0
        self._workers: list[AtOnce] = []
        state = StreamSpec("_state", (), 1, "disk", STATE_SEGMENT_BYTES, 86_400)
        self.store = open_store(
            files, root, StoreLayout([StreamSpec("main", ("#",))], matches, internal=state),
            OpenOptions(BEGIN_US), holder=f"pid {os.getpid()}\n",
        )  # fmt: skip
        platform = Platform(lambda name, **fields: None, NoPump, clock=self._clock, worker=self._worker)
        self.parts = build_shard(self.store, ShardContext(pack_bytes_per_second=PACK_BYTES_PER_SECOND), platform)
        self.parts.operation.startup.read_journal(self.parts.events.tell)
        self.parts.operation.startup.advance()
        self.settle()

    def _clock(self) -> tuple[int, float]:
        return BEGIN_US + round(self.now * 1e6), self.now

    def _worker(self, name: str, failed: object) -> AtOnce:
        self._workers.append(AtOnce())
        return self._workers[-1]

    def settle(self) -> None:
        """Turns, until no job is to be reported."""
        turn = self.parts.turn
        while True:
            turn.begin_turn()
            turn.end_turn()
            busy = [worker for worker in self._workers if worker.pending]
            if not busy:
                return
            for worker in busy:
                worker.finish()

    def pass_until(self, moment: float) -> None:
        """Turns at each deadline before a moment, and at that."""
        while (due := self.now + max(SOONEST, self.parts.turn.seconds_to_next_deadline())) < moment:
            self.now = due
            self.settle()
        self.now = moment
        self.settle()

    def end(self) -> None:
        self.parts.stop()
        self.store.close()


def day(rate: float, messages: int = DAY_MESSAGES, tell: Callable[[int], None] = lambda number: None) -> Day:
    """tell: called with the number of a message, now and then. raises: OSError, where the disk has no room"""
    with tempfile.TemporaryDirectory(prefix="bench-wear-day-") as name:
        root = Path(name, "data")
        files = CountedFiles(root)
        shard = Shard(files, str(root))
        subscriber, publisher = Client(shard), Client(shard)
        subscriber.say(connect_packet("wear-subscriber", lasting=True))
        subscriber.say(subscribe_packet(TOPIC, 1))
        publisher.say(connect_packet("wear-publisher"))
        subscriber.take(), publisher.take()
        begin = shard.now
        for number in range(messages):
            shard.pass_until(begin + number / rate)
            send(publisher, subscriber, number)
            if not number % 10_000:
                tell(number)
        shard.pass_until(shard.now + 2.0)
        running, seconds = taken(root), shard.now - begin
        shard.end()
        return Day(messages, seconds, files.written, running, taken(root), segments(root))


def send(publisher: Client, subscriber: Client, number: int) -> None:
    packet = bytearray(publish_packet(TOPIC.encode(), 1, payload(number)))
    at = len(packet) - len(payload(number)) - 2
    packet[at : at + 2] = (1 + number % 0xFFFF).to_bytes(2, "big")
    publisher.say(packet)
    came = subscriber.take()
    assert came.endswith(payload(number)), f"message {number} came as {came!r}"
    subscriber.say(bytes([PUBACK, 2]) + came[at : at + 2])
    assert publisher.take() == bytes([PUBACK, 2]) + packet[at : at + 2]
