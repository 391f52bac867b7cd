"""One shard of a simulated broker, from its start to its death: the real driver, pump, sessions, router and store."""

import select
from collections import deque
from collections.abc import Callable
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.segment_writer import Flush
from rumq.mqtt.topics import matches
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.process.listeners.client_connections import take_handed_over
from rumq.session.flow_control.listener_policy import OPEN
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.bus.dialers import PairDialer
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.bus.writer_epoch import writer_epoch
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.worker_threads import Pool
from tests.commitlog.records import numbers
from tests.simulation.network import Door, Doors, Network, Poller, Stream

OUTBOX_BYTES = 1 << 18
BUFFER_BYTES = 1 << 16
RING_BYTES = 1 << 8  # so small that it is full at times
RING_INLINE_BYTES_MAX = 16
GENERATION = 1


class Killed(BaseException):
    """kill -9, between two calls of the file system."""


class Worker(Pool):
    """In the place of `rumq.shards.write_path.worker_threads.Worker`: its jobs run when the simulation says so."""

    def __init__(self, fd: int, poller: Poller, name: str) -> None:
        self.fd, self._poller, self.name = fd, poller, name
        self.jobs: deque[tuple[Callable[[], Any], Any]] = deque()
        self._finished: deque[tuple[Any, Any, BaseException | None]] = deque()
        self.pending = 0

    def maybe_write(self, flush: Flush) -> bool:
        return False  # every job is one of the simulation's steps

    def submit(self, job: Callable[[], Any], done: Any, lane: int = 0) -> None:
        self.pending += 1
        self.jobs.append((job, done))

    def flush(self, flush: Flush, done: Any, lane: int = 0) -> None:
        self.submit(flush.run, done)

    def run(self) -> None:
        """One job, from its beginning to its end. raises: Killed"""
        job, done = self.jobs.popleft()
        result, fault = None, None
        try:
            result = job()
        except Exception as raised:
            fault = raised
        self._finished.append((done, result, fault))
        self._poller.tell(self.fd, select.EPOLLIN)

    def finish(self) -> None:
        while self._finished:
            done, result, fault = self._finished.popleft()
            self.pending -= 1
            done(result, fault)

    def stop(self) -> None: ...


class Shard:
    """raises: Killed, from its constructor and from every call, if the files say so."""

    def __init__(
        self, index: int, count: int, streams: list[StreamSpec], state: StreamSpec, files: SimulatedFiles,
        network: Network, doors: list[Door], poller: Poller, *, clock: Callable[[], tuple[int, float]], seed: int,
        boot_id: bytes, linger_seconds: float, hot_bytes_max: int, event: Callable[..., None],
        missing_seconds: float | None, pack_bytes_per_second: int, term: int | None = None,
    ) -> None:  # fmt: skip
        self.index = index
        self.files = files
        self._network = network
        self._doors = doors
        self.poller = poller
        self.workers: list[Worker] = []
        self.is_ready = False
        self.is_busy = True
        self.due = 0.0
        random = numbers(seed)

        def elsewhere(spec: StreamSpec, where: int, number: int) -> RemotePartition | None:
            owner = where % count
            return None if owner == index else RemotePartition(spec, where, number, GENERATION, owner)

        self.store = open_store(
            files,
            "data",
            StoreLayout(streams, matches, internal=state, internal_number=index, elsewhere=elsewhere),
            OpenOptions(
                clock()[0],
                random=random,
                hot_bytes_max=hot_bytes_max,
                direct_bytes_min=1 << 30,
                boot_id=boot_id,
                epoch=writer_epoch(clock()[0], term),
            ),
            lock=files.open("data/LOCK"),
        )
        context = ShardContext(
            index, count, linger_seconds=linger_seconds, missing_seconds=missing_seconds,
            pack_bytes_per_second=pack_bytes_per_second,
        )  # fmt: skip
        platform = Platform(
            event, self._make_pump, clock, self._make_worker, fd_passing=self._make_doors, random=random,
            dialer=(lambda pump, timers, events: self._make_dialer(seed)) if count > 1 else None,
        )  # fmt: skip
        self.parts = build_shard(self.store, context, platform)
        self.pump = self.parts.pump
        self.parts.operation.startup.read_journal(self.parts.events.tell)
        take_handed_over(self.parts, {0: OPEN}, OUTBOX_BYTES)
        door = doors[index]
        door.poller = self.poller
        if door.waiting:
            self.poller.tell(door.fd, select.EPOLLIN)
        self.pump.watch(door.fd, self.doors.hear)
        self.parts.cluster.peers.dial()

    def _make_doors(self, later: object, failed: object) -> Any:
        self.doors = Doors(self._network, self._doors, self.index, self.poller)
        return self.doors

    def _make_dialer(self, seed: int) -> PairDialer:
        doors: Any = self.doors
        return PairDialer(doors, self.index, RING_BYTES << seed // 1000 % 3, RING_INLINE_BYTES_MAX)

    def _make_pump(self, turn: Turn) -> Pump:
        return Pump(turn, epoll=lambda: self.poller, read_bytes=BUFFER_BYTES)

    def _make_worker(self, name: str, failed: object) -> Worker:
        worker = Worker(self._network.next_fd(), self.poller, name)
        self.workers.append(worker)
        return worker

    def accept(self, stream: Stream, peer: str) -> None:
        """As a listener does."""
        connection = Connection(self.pump, stream, peer, OUTBOX_BYTES)
        connection.link = self.parts.clients.broker.welcome(connection)
        self.pump.add(connection)

    def turn(self) -> None:
        """One turn of the loop, and what stands beside it. raises: Killed"""
        self.pump.turn(1.0)
        if not self.is_ready:
            self.is_ready = self.parts.operation.startup.advance()
        wait = self.parts.turn.seconds_to_next_deadline()
        self.is_busy = self.poller.had or wait == 0.0
        self.due = self.parts.clock.monotonic + wait


def close_all(network: Network, door: Door, poller: Poller) -> None:
    """A shard's memory is gone; the kernel closes what it had open."""
    door.poller = None
    for stream in network.of(poller):
        stream.poller = None
        stream.close()
