"""One whole shard over a simulated disk: clients are byte strings, the clock is a number, threads are waited for."""

import select
from collections.abc import Callable
from functools import partial
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.volatile import VolatilePartition
from rumq.mqtt.topics import matches
from rumq.net.pending_logins import PendingLogins
from rumq.session.flow_control.limits import Limits
from rumq.session.ports.transport import Transport
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from rumq.shards.replication.follower_links import Connect, connector
from rumq.shards.replication.term import Term
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.stats.sys_publisher import SysStatus
from rumq.shards.turn.turn import Turn
from rumq.shards.write_path.worker_threads import Worker
from tests.commitlog.records import DEAD, NOW, numbers
from tests.conformance import wire
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Packet

STREAMS = [StreamSpec("other", ("other/#",)), StreamSpec("main", ("#",))]
STATUS = StreamSpec("_sys", (), 1, "memory")
STATE = StreamSpec("_state", (), 1, "disk", 1 << 20, 86_400)


class Client(Transport):
    """A connection to the shard. heard: what was sent to it and not taken yet; closed: by the broker."""

    peer = "test"

    def __init__(self, shard: "Shard", client_id: str, version: int, **connect: Any) -> None:
        self.shard, self.version = shard, version
        self.room, self.refused = 1 << 20, False
        self.closed = False
        self.bytes_in = self.bytes_out = 0
        self.tap: Any = None
        self.unparsed: bytearray | None = None
        self._bytes = bytearray()
        self._early: list[Packet] = []  # what came with CONNACK
        self.link = shard.parts.clients.broker.welcome(self)
        self.say(wire.connect(client_id, version, **connect))
        connack, *self._early = self.take()
        assert connack.kind == wire.Kind.CONNACK

    def say(self, *packets: bytes) -> None:
        data = b"".join(packets)
        self.bytes_in += len(data)
        if self.tap is not None:
            self.tap.received(data)
        assert self.link.receive(data, 0, len(data)) == len(data)
        self.shard.settle()

    def take(self) -> list[Packet]:
        packets, self._early = self._early, []
        while (size := frame_size(bytes(self._bytes[:5]))) is not None:
            head, whole = size
            packets.append(decode(self._bytes[0], bytes(self._bytes[head:whole]), self.version))
            del self._bytes[:whole]
        return packets

    # What the link sees of its connection

    def write(self, data: Any, owner: object = None) -> None:
        if self.tap is not None:
            self.tap.sent(data)
        self._bytes += data
        self.bytes_out += len(data)

    def waits(self) -> bool:
        return False

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.closed = True


class NoPump(ShardTotals):
    """Of a pump, what it has counted, and pending logins of whom nobody has to go: turns are made by hand."""

    __slots__ = ("bus_bytes_out", "connections", "pending_logins", "turns")

    def __init__(self, turn: object) -> None:
        super().__init__()
        self.bus_bytes_out = 0
        self.turns = 0
        self.connections: dict[int, object] = {}
        self.pending_logins = PendingLogins(lambda connection, why: None, lambda: 0)

    def watch(self, fd: int, callback: object, mask: int = 0) -> None: ...


class Shard:
    def __init__(
        self, files: SimulatedFiles, *, free_bytes_min: int = 0, seed: int = 0, now_us: int = NOW,
        one_writer: bool = True, status_seconds: int = 0, free_percent_min: float = 0,
        wanted_free_percent_min: float = 0, exports: ExportPositions | None = None,
        other: StreamSpec = STREAMS[0], pump: Callable[[Turn], Any] = NoPump, limits: Limits | None = None,
        term: Term | None = None, connect: Callable[[Any], Connect] = connector, state: StreamSpec = STATE,
        **main: Any,
    ) -> None:  # fmt: skip
        """main: of the stream that keeps most topics; one_writer: calls of `files` have the same order each time;
        status_seconds: how often it tells of itself; term: of a cluster's leader, which has not begun then
        state: the stream of the journal"""
        self.files = files
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.now_us, self.monotonic = now_us, 1000.0
        streams = [other, StreamSpec("main", ("#",), **main)]
        self.store = open_store(
            files,
            "data",
            StoreLayout(
                streams,
                matches,
                internal=state,
                volatile=partial(VolatilePartition, STATUS, now_us=now_us) if status_seconds else None,
            ),
            OpenOptions(now_us, random=numbers(seed), direct_bytes_min=1 << 30, hot_bytes_max=0),
            holder=DEAD,
        )
        context = ShardContext(
            limits=limits or Limits(),
            linger_seconds=0.0,
            free_bytes_min=free_bytes_min,
            free_percent_min=free_percent_min,
            wanted_free_percent_min=wanted_free_percent_min,
            exports=exports,
            status=SysStatus(status_seconds, "rumq version 1", self.monotonic) if status_seconds else None,
            term=term,
        )
        platform = Platform(
            lambda name, **fields: self.events.append((name, fields)),
            pump,
            clock=lambda: (self.now_us, self.monotonic),
            worker=partial(Worker, one_lane=one_writer),
            connect=connect,
        )
        self.parts = build_shard(self.store, context, platform)
        self.parts.operation.startup.read_journal(self.parts.events.tell)
        self.parts.operation.startup.advance()
        if self.parts.operation.status is not None:
            self.parts.operation.status.begin()
        self.settle()

    def settle(self) -> None:
        """Turns, until no thread has anything to do."""
        turn, workers = self.parts.turn, self.parts.writing.workers
        while True:
            turn.begin_turn()
            turn.end_turn()
            busy = [worker.fd for worker in workers if worker.pending]
            if not busy:
                return
            select.select(busy, [], [])
            for worker in workers:
                worker.finish()

    def after(self, seconds: float) -> None:
        self.now_us += round(seconds * 1e6)
        self.monotonic += seconds
        self.settle()

    def told(self, *names: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name in names]

    def end(self) -> None:
        self.parts.stop()
