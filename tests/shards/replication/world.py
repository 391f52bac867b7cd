"""A leader and its followers, without sockets, threads or clocks: bytes are carried by hand, and disks are simulated.

The followers are those of the product: `StandbyCore` over copies of the log."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from commitlog import OpenOptions, Partition, StoreLayout, StreamSpec, open_store
from commitlog.testing.memory_state import MemoryState
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.links.greeting import Greeting
from rumq.cluster.node.log_copies import CopyId, NodeLogCopies
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.standby.standby_core import StandbyCore
from rumq.loop.queues import StepQueue
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.mqtt.kernels.batch import Batch
from rumq.net.frames import MessageReader, encoded
from rumq.session.connection.pending_acks import AckTracker
from rumq.shards.replication.follower_link import OUTBOX_BYTES_MAX, ReplicaLink
from rumq.shards.replication.follower_links import Network
from rumq.shards.replication.replication import Replication
from rumq.shards.replication.term import Term
from rumq.shards.write_path.group_commit import CommitOptions, GroupCommit
from rumq.shards.write_path.worker_threads import DiskWorkers
from rumq.shards.write_path.write_admission import WriteAdmission
from tests.commitlog.records import DEAD, NOW, append, numbers
from tests.shards.world import ByHand

KEYS = ("main/g1/p0", "other/g1/p0", "_state/g1/p0")


class Wire:
    """The leader's end of a connection to a follower."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.room, self.refused, self.is_quiet = OUTBOX_BYTES_MAX, False, False
        self.outbox: list[Any] = []
        self.is_cut = False

    def write(self, data: Any) -> None:
        self.outbox.append(data)
        self.room -= len(data)

    def close(self) -> None:
        self.is_cut = True


class Follower:
    """files: of its disk, which is_well; is_reachable: it can be dialled; heard: the messages that it got

    syncs: it acknowledges"""

    def __init__(self, node: str) -> None:
        self.node = node
        self.files = SimulatedFiles()
        self.state = MemoryState()
        self.is_reachable = self.syncs = self.is_well = True
        self.heard: list[m.ReplicaMessage] = []
        self.link = 0
        self.begin()

    def begin(self) -> None:
        self.copies = NodeLogCopies(
            self.files, "data", [CopyId(key, *((p := key.split("/"))[0], int(p[2][1:]))) for key in KEYS]
        )
        self.core = StandbyCore(
            self.node, self.copies, self.state, patience=lambda: 1e9, unique=lambda: "", now=0.0,
            is_well=lambda: self.is_well,
        )  # fmt: skip
        self.frames: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)

    def dialled(self) -> None:
        self.frames = MessageReader(m.ReplicaMessage)
        self.link += 1

    def receive(self, data: bytes) -> None:
        for message, raw in self.frames.feed(data):
            self.heard.append(message)
            if not isinstance(message, Greeting):
                self.core.received(self.link, message, raw, 0.0)

    def answers(self) -> bytes:
        if self.syncs:
            self.core.flush()
        replies = [e.message for e in self.core.take_effects() if isinstance(e, fx.Reply)]
        return b"".join(encoded(message) for message in replies)

    def kinds(self, *kinds: type) -> list[Any]:
        return [message for message in self.heard if isinstance(message, kinds)]


class World:
    """names: of the followers; ended: how often the leader was told to end"""

    def __init__(
        self, *names: str, durability: str = "quorum", files: SimulatedFiles | None = None, epoch: int = 1,
        followers: dict[str, Follower] | None = None, segment_bytes_max: int = 1 << 20, **main: Any,
    ) -> None:  # fmt: skip
        self.files = files if files is not None else SimulatedFiles()
        self.followers = followers or {name: Follower(name) for name in names}
        self.time = 0.0
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ended = 0
        streams = [
            StreamSpec("main", ("#",), 1, durability, segment_bytes_max, **main),  # type: ignore[arg-type]
            StreamSpec("other", ("other",), 1, "disk"),
        ]
        state = StreamSpec("_state", (), 1, durability, 1 << 20, 86_400)  # type: ignore[arg-type]
        self.store = open_store(
            self.files,
            "data",
            StoreLayout(streams, lambda f, t: f == t or f == "#", internal=state),
            OpenOptions(NOW, random=numbers(epoch), hot_bytes_max=0, direct_bytes_min=1 << 30, epoch=epoch),
            holder=DEAD,
        )
        self.writer, self.reader = ByHand(), ByHand()
        self.clock = ShardClock(lambda: (NOW, self.time))
        self.timers = TimerQueue(self.clock)
        events: Any = SimpleNamespace(tell=lambda name, **fields: self.events.append((name, fields)))
        self.commands = StepQueue()
        sources = [partition.ack_source for partition in [*self.store.partitions, self.store.internal]]
        self.acks = AckTracker(sources, lambda now_us: None, self.clock)
        admission = WriteAdmission(self.store, [Batch()] * 2, events, free_bytes_min=0, say=lambda *state: None)
        workers: Any = DiskWorkers(self.writer, self.reader)  # type: ignore[arg-type]
        self.wires: dict[str, tuple[Wire, ReplicaLink]] = {}
        record = ShardRecord(epoch=epoch, leader="n0", claim="claim", replicas=["n0", *self.followers])
        nodes = [
            NodeRecord(
                id=name, host=name, port=7000, mqtt=[], zone="", incarnation="", version="", feature_level=1,
                has_log=True, clock_us=0,
            )
            for name in self.followers
        ]  # fmt: skip
        self.view = View(
            cluster="c", node="n0", replicas=1 + len(nodes), nodes=nodes, shards=[Versioned(record, 1)],
            is_current=True,
        )  # fmt: skip
        term = Term("c", 0, "n0", epoch, record, self.view, end=self._end)
        network = Network(self._connect, lambda fd, call: None)
        self.replication = Replication(
            term, self.store, lambda: self.commit, self.reader, self.timers, self.clock, events, network
        )
        options = CommitOptions(0.0, self.replication.written)
        self.commit = GroupCommit(self.store, workers, self.acks, admission, self.commands, self.clock, events, options)

    def _end(self) -> None:
        self.ended += 1

    def _connect(self, address: tuple[str, int], peer: str, link_of: Callable[[Any], ReplicaLink]) -> None:
        assert address == (peer, 7001)
        if not self.followers[peer].is_reachable:
            raise OSError(errno.ECONNREFUSED, "refused")
        wire = Wire(peer)
        self.followers[peer].dialled()
        self.wires[peer] = (wire, link_of(wire))

    # By hand

    def begin(self) -> World:
        self.replication.begin()
        self.settle()
        return self

    @property
    def main(self) -> Partition:
        return self.store.own[0]

    def publish(self, count: int = 1, size: int = 10, index: int = 0) -> None:
        append(self.store.own[index], [(b"t", bytes(size))] * count)
        self.commit.urgent(index)

    def turn(self) -> None:
        self.clock.tick()
        self.timers.run_next_turn(guard)
        self.commit.end_turn()
        self.replication.end_turn()

    def carry(self, peer: str) -> bool:
        """What is on the way to a follower, and back; whether there was something."""
        if peer not in self.wires:
            return False
        wire, link = self.wires[peer]
        data, wire.outbox, wire.room = b"".join(wire.outbox), [], OUTBOX_BYTES_MAX
        follower = self.followers[peer]
        if wire.is_cut or not follower.is_reachable:
            self.hang_up(peer)
            return bool(data)
        follower.receive(data)
        answers = follower.answers()
        if answers:
            link.receive(answers, 0, len(answers))
        if wire.refused:
            wire.refused = False
            link.drained()
        return bool(data or answers)

    def hang_up(self, peer: str) -> None:
        """The connection ends."""
        follower = self.followers[peer]
        _, link = self.wires.pop(peer)
        follower.core.lost(follower.link, 0.0)
        follower.core.take_effects()
        link.lost("the test hangs up")

    def settle(self, *, but: tuple[str, ...] = (), writes: bool = True, reads: bool = True) -> None:
        """Until nothing is on the way. but: followers whose links are stuck; writes, reads: the leader's disk does"""
        for _ in range(10_000):
            self.turn()
            busy = False
            for pool, works in ((self.writer, writes), (self.reader, reads)):
                if works and pool.jobs:
                    pool.work()
                    busy = True
            for peer in self.followers:
                if peer not in but:
                    busy = self.carry(peer) or busy
            if not busy and not self.timers.has_next_turn:
                return
        raise AssertionError("it never settles")

    def after(self, seconds: float, **how: Any) -> None:
        self.time += seconds
        self.clock.tick()
        self.timers.run_due(guard)
        self.settle(**how)

    def sent(self, peer: str) -> list[m.ReplicaMessage]:
        """What is on the way to a follower."""
        reader: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)
        return [message for message, _ in reader.feed(b"".join(self.wires[peer][0].outbox))]

    def told(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]

    def is_copied(self, peer: str) -> bool:
        """Whether a follower's segments have the leader's bytes, up to where they count."""
        stops = {
            f"{source.key}/{segment.name}": segment.stop
            for source in (copied.source for copied in self.replication._copies.by_key.values())
            for segment in source.segments()
        }
        ours = segments(self.files)
        valid = {path: ours[path][:stop].rstrip(b"\0") for path, stop in stops.items()}
        return segments(self.followers[peer].files) == valid


def segments(files: SimulatedFiles) -> dict[str, bytes]:
    """Path -> bytes of each segment, without the zeros behind its end."""
    found = {}
    for key in KEYS:
        for name in files.names(f"data/{key}") if files.exists(f"data/{key}") else []:
            if name.endswith(".seg"):
                found[f"{key}/{name}"] = bytes(files.content(f"data/{key}/{name}")).rstrip(b"\0")
    return found


def guard(task: str, call: Callable[[], None]) -> None:
    call()
