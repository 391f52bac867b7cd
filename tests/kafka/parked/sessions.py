"""Sessions of one client with a connection, on a clock that jumps and a log that the session writes: the same with
parking and without it, so that both can be compared."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import trio
from trio.testing import MockClock

from commitlog import Chunk
from commitlog.read.cold_reads import clipped
from rumq.flight.serving.call_authorization import FlightCaller
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.answers.connected_client import AdvertisedAddress, FetchBounds, KafkaClient, KafkaDoor
from rumq.kafka.connection import ConnectionBounds, KafkaConnection, Parking
from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.parked.parked_connections import ParkedConnections
from rumq.kafka.protocol.errors import KafkaFault
from rumq.kafka.protocol.frames import LENGTH_BYTES
from rumq.kafka.topics.topic_catalog import TopicCatalog
from tests.kafka.log.test_tail import Log
from tests.kafka.served import SOURCES
from tests.kafka.wire_client import frame_of

P0, P1 = "main/g1/p0", "main/g1/p1"
END = 5  # of each partition, when a session begins
SOCKET_BYTES = 1  # of what is sent and not read; the system makes it a few thousand
IDLE_SECONDS = 20.0  # less than an answer may wait to be taken


class View(NamedTuple):
    name: str
    first_lsn: int
    end_lsn: int


class Tail(NamedTuple):
    """All chunks that there will be; `end` of them are committed."""

    every: Sequence[Chunk]
    first: int
    end: int

    def chunks(self, at: int, end: int) -> Iterator[Chunk]:
        for chunk in self.every:
            if chunk.base_lsn < end and chunk.next_lsn > at:
                yield clipped(chunk, at, end)


class SessionLog:
    """Has two partitions with the same chunks. looks: how often it was looked at the files; look_seconds: each takes"""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self.partitions = {name: LogPartition(cast(Any, View(name, 0, END))) for name in (P0, P1)}
        self.looks, self.look_seconds = 0, 0.0
        self.is_broken = False
        for each in self.partitions.values():
            each.tail = cast(Any, Tail(chunks, 0, END))

    def write(self, name: str, records: int) -> None:
        partition = self.partitions[name]
        end = min(partition.end + records, self._chunks[-1].next_lsn)
        partition.tail = cast(Any, Tail(self._chunks, 0, end))
        partition.advance()

    def retain(self, name: str, first: int) -> None:
        """Retention removes what is below."""
        partition = self.partitions[name]
        first = max(partition.first, min(first, partition.end))
        partition.take(cast(Any, View(name, first, partition.end)))

    async def look(self, age_seconds: float = 0.0) -> None:
        self.looks += 1
        if self.look_seconds:
            await trio.sleep(self.look_seconds)
        if self.is_broken:
            raise OSError(5, "broken")

    def follow(self, partition: LogPartition) -> None:
        pass

    async def reach(self, partition: LogPartition, lsn: int) -> bool | None:
        return partition.end >= lsn


class Session:
    """What a script acts on. parked: None: nothing is

    heard: what the client was sent; end: how the connection ended; "": it did not"""

    def __init__(self, chunks: Sequence[Chunk], *, parks: bool, expires_s: float | None = None) -> None:
        self.log = SessionLog(chunks)
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
            each.setblocking(False)
        self._client_socket = theirs
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self.door = KafkaDoor(
            cast(Any, self.log), TopicCatalog(SOURCES, b"log"), cast(Any, None),
            FetchBounds(1 << 20, KafkaShares(1 << 20)), "test", None, False, lambda _: {}, print,
            lambda: int(trio.current_time() * 1e6),
        )  # fmt: skip
        expires_us = None if expires_s is None else int(expires_s * 1e6)
        caller = FlightCaller("u", None, expires_us)
        self.client = KafkaClient(self.door, "a", "a", AdvertisedAddress("a", 1), caller=caller)
        self.parked = ParkedConnections(cast(Any, self.log)) if parks else None
        self.scope = trio.CancelScope()
        self.heard = bytearray()
        self._heard_at: list[tuple[int, float]] = []  # how many bytes, and when
        self.may_hear = trio.Event()
        self.may_hear.set()
        self.end = ""
        self._number = 0

    async def serve(self) -> None:
        parking = None if self.parked is None else Parking(self.parked, self._stream.socket.fileno())
        connection = KafkaConnection(self._stream, self.client, ConnectionBounds(1 << 12, IDLE_SECONDS), parking)
        try:
            with self.scope:
                await connection.run()
                self.end = "left"
            self.end = self.end or "cancelled"
        except (KafkaFault, OSError) as fault:
            self.end = f"{type(fault).__name__}: {fault}"
        except trio.BrokenResourceError:
            self.end = "left"
        await trio.aclose_forcefully(self._stream)

    def numbered(self, frame: bytes) -> bytes:
        """With the next correlation id."""
        self._number += 1
        return frame[:8] + self._number.to_bytes(4, "big") + frame[12:]

    @property
    def times(self) -> list[float]:
        """When the client had each answer."""
        found, end = list[float](), 0
        while end < len(self.heard):
            end += 4 + int.from_bytes(self.heard[end : end + 4], "big")
            found += [when for size, when in self._heard_at if size >= end][:1]
        return found

    def send(self, data: bytes) -> None:
        with suppress(BlockingIOError, OSError):
            self._client_socket.send(data)

    def leave(self) -> None:
        if self._client_socket.fileno() < 0:
            return
        self.hear()
        trio.lowlevel.notify_closing(self._client_socket)
        self._client_socket.close()

    def stop_reading(self) -> None:
        self.may_hear = trio.Event()

    def read_again(self) -> None:
        self.may_hear.set()

    def fill(self) -> None:
        """The socket with empty frames, so that the client takes no answer before it reads."""
        with suppress(BlockingIOError, OSError):
            while True:
                os.write(self._stream.socket.fileno(), bytes(LENGTH_BYTES))

    def stop_sending(self) -> None:
        with suppress(OSError):
            self._client_socket.shutdown(socket.SHUT_WR)

    async def hear_all(self) -> None:
        """What it is sent, when it comes."""
        with suppress(trio.ClosedResourceError):
            while self._client_socket.fileno() >= 0:
                await trio.lowlevel.wait_readable(self._client_socket)
                if self.may_hear.is_set() and not self.hear():
                    return
                await self.may_hear.wait()

    def hear(self) -> bool:
        """What is there; returns whether more may come."""
        try:
            while data := self._client_socket.recv(1 << 16):
                self.heard += data
                self._heard_at.append((len(self.heard), trio.current_time()))
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False


def fetch_frame(asked: Sequence[tuple[str, int, int]], wait_ms: int, version: int = 11, **more: Any) -> bytes:
    """asked: topic, partition, offset"""
    topics = [
        {"topic": topic, "partitions": [{"partition": number, "fetch_offset": at, "partition_max_bytes": 1 << 20}]}
        for topic, number, at in asked
    ]
    body = {"replica_id": -1, "max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 1}
    return frame_of("Fetch", version, body | {"topics": topics} | more)


Act = Callable[[Session], None]


def run_session(session_of: Callable[[], Session], script: Sequence[tuple[float, Act]]) -> Session:
    """script: what is done when, in seconds from the beginning, in order"""

    async def run() -> Session:
        session = session_of()
        begin = trio.current_time()
        async with trio.open_nursery() as nursery:
            if session.parked is not None:
                nursery.start_soon(session.parked.run)
            nursery.start_soon(session.serve)
            nursery.start_soon(session.hear_all)
            for at, act in script:
                await trio.sleep_until(begin + at)
                act(session)
            await trio.testing.wait_all_tasks_blocked()
            session.leave()
            nursery.cancel_scope.cancel()
        return session

    return trio.run(run, clock=MockClock(autojump_threshold=0))


def chunks_of(log: Log) -> list[Chunk]:
    view = log.view()
    return [each for each in view.chunks(0, view.end_lsn) if isinstance(each, Chunk)]
