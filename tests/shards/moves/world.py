"""A shard over a log in memory that is led by one process after another, and clients at its sockets, in one thread."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.segment_writer import Flush
from rumq.mqtt.topics import matches
from rumq.net.connection import Connection
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.net.listening.transports import continue_handed_over
from rumq.session.flow_control.listener_policy import OPEN
from rumq.session.moves.moved_client import MovedClient, encode_moved
from rumq.session.state.drop_counters import DropCounters
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.moves.arrivals import continue_moved
from rumq.shards.moves.client_hold import ClientHold
from rumq.shards.moves.relayed_clients import RelayedClients
from rumq.shards.stats.counters import CountedShard, Counters
from rumq.shards.write_path.worker_threads import Pool
from tests.commitlog.records import DEAD, NOW, numbers
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Packet

STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)
OUTBOX_BYTES_MAX = 1 << 20
TURNS_MAX = 400


class Worker(Pool):
    """In the place of `rumq.shards.write_path.worker_threads.Worker`: a job runs when it is submitted, in this thread.

    So what is on the disk after a number of turns does not depend on when a thread runs."""

    def __init__(self, name: str, failed: Callable[[str], None]) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._finished: deque[tuple[Any, Any, BaseException | None]] = deque()
        self.pending = 0

    def maybe_write(self, flush: Flush) -> bool:
        flush.run()
        return True

    def submit(self, job: Callable[[], Any], done: Any, lane: int = 0) -> None:
        self.pending += 1
        try:
            self._finished.append((done, job(), None))
        except Exception as raised:
            self._finished.append((done, None, raised))
        os.eventfd_write(self.fd, 1)

    def flush(self, flush: Flush, done: Any, lane: int = 0) -> None:
        self.submit(flush.run, done, lane)

    def finish(self) -> None:
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass
        while self._finished:
            done, result, fault = self._finished.popleft()
            self.pending -= 1
            done(result, fault)

    def stop(self) -> None:
        self.finish()
        os.close(self.fd)


class Process:
    """The shard as one process leads it."""

    def __init__(self, world: World) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        store = open_store(
            world.files,
            "data",
            StoreLayout([StreamSpec("main", ("#",), durability="process")], matches, internal=STATE),
            OpenOptions(NOW, random=numbers(1)),
            holder=DEAD,
        )
        self.parts = build_shard(
            store, ShardContext(linger_seconds=0.0),
            Platform(
                lambda name, **fields: self.events.append((name, fields)),
                clock=lambda: (NOW + int(world.now * 1e6), world.now),
                worker=Worker,
            ),
        )  # fmt: skip
        self.parts.operation.startup.read_journal(self.parts.events.tell)
        self.parts.operation.startup.advance()
        self.relays = RelayedClients(self.parts.pump)
        self.hold = ClientHold(self.parts, self.relays)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]

    def serve(self, sock: socket.socket, peer: str = "10.0.0.1:1") -> None:
        welcome = self.parts.clients.broker.welcome
        continue_handed_over(self.parts.pump, "client", sock, peer, b"", OUTBOX_BYTES_MAX, welcome)

    def count(self) -> None:
        """Begin to count what the operator's figures and $SYS show."""
        parts, broker = self.parts, self.parts.clients.broker
        counted = CountedShard(0, 0, parts.store, parts.router, broker.registry, broker.shard_totals, DropCounters())
        Counters(counted, parts.timers, lambda: parts.pump, lambda: 0).count(lambda tally: None)

    def stop(self) -> None:
        """As a process that ends at once: nothing is written, and clients are told nothing."""
        for connection in list(self.parts.pump.connections.values()):
            sock = connection.sock
            self.parts.pump.forget(connection)
            sock.close()
        self.parts.pump.close()
        self.parts.stop()


class World:
    """process: the one that leads now; now: monotonic seconds"""

    def __init__(self) -> None:
        self.files = SimulatedFiles()
        self.now = 1000.0
        self.process = Process(self)
        self.clients: list[Client] = []
        self.on_the_way: list[tuple[int, str, bytes]] = []

    def client(self, connect: bytes) -> Client:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        self.process.serve(theirs)
        made = Client(self, ours)
        self.clients.append(made)
        made.write(connect)
        return made

    def turn(self, times: int = 3) -> None:
        for _ in range(times):
            self.process.parts.pump.turn(0.001)

    def hold(self) -> None:
        """Hold all clients and note them, as a hand-over does: it goes on when the notes are written."""
        hold, commit = self.process.hold, self.process.parts.writing.commit
        for _ in range(TURNS_MAX):
            hold.hold()
            if hold.is_settled():
                break
            self.turn(1)
        assert hold.is_settled()
        hold.note()
        for _ in range(TURNS_MAX):
            self.turn(1)
            if commit.is_written():
                break
        assert commit.is_written()

    def give(self, connection: Connection, moved: MovedClient, listener: int) -> None:
        state = connection.handover_state() or encode_state(HandoverState(connection.certificate))
        peer = connection.peer
        self.on_the_way.append((connection.hand_over(), peer, state + encode_moved(moved)))

    def leave(self) -> int:
        """The leader before ends, the next one begins. returns: how many connections are on their way"""
        count = self.process.hold.depart(0, 1, self.give)
        self.process.stop()
        self.files = self.files.after_kill()
        self.process = Process(self)
        return count

    def arrive(self) -> None:
        for fd, peer, data in self.on_the_way:
            continue_moved(self.process.parts, OPEN, socket.socket(fileno=fd), peer, data, OUTBOX_BYTES_MAX)
        self.on_the_way.clear()
        self.turn()

    def move(self) -> None:
        self.hold()
        assert self.leave() == len(self.clients)
        self.arrive()

    def end(self) -> None:
        for fd, _, _ in self.on_the_way:
            os.close(fd)
        for client in self.clients:
            client.sock.close()
        self.process.stop()


class Client:
    def __init__(self, world: World, sock: socket.socket, version: int = 5) -> None:
        self.world, self.sock, self.version = world, sock, version
        self._buffer = b""

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)

    def maybe_packet(self) -> Packet | None:
        """The next one, if it comes soon."""
        for _ in range(30):
            size = frame_size(self._buffer)
            if size is not None and len(self._buffer) >= size[1]:
                whole, self._buffer = self._buffer[: size[1]], self._buffer[size[1] :]
                return decode(whole[0], whole[size[0] :], self.version)
            self.world.turn(1)
            try:
                self._buffer += self.sock.recv(1 << 20)
            except BlockingIOError:
                pass
        return None

    def packet(self) -> Packet:
        found = self.maybe_packet()
        assert found is not None, self.world.process.events
        return found
