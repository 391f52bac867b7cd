"""The driver of a standby: what `StandbyCore` asks for is done over the simulated links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.standby import standby_core
from rumq.cluster.replication.standby.leader_silence import PATIENCE_SECONDS
from tests.cluster.simulation.disk import DiskState, MemoryLogs
from tests.cluster.simulation.feed import Frames, frames_of
from tests.cluster.simulation.leader import Leader
from tests.cluster.simulation.network import Link

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process


class Standby:
    def __init__(self, process: Process) -> None:
        self._process, self._world = process, process.world
        random = self._world.random
        self.logs = MemoryLogs(process.node.disk)
        self.state = DiskState(process.node.disk)
        if self.logs.restore_notes(self.state):  # R11, as `note_doubt` does
            self.state.miss()
        elif self.state.is_short:
            self._world.count["copies found again"] += 1
            self.state.find_again()
        low, high = PATIENCE_SECONDS
        self.core = standby_core.StandbyCore(
            process.node.name, self.logs, self.state, patience=lambda: random.uniform(low, high),
            unique=self._world.unique, now=self._world.now,
        )  # fmt: skip
        self._served = 0
        self._waiting: dict[str, list[m.ReplicaMessage]] = {}
        self._flushes = False

    @property
    def next_deadline(self) -> float:
        return self.core.next_deadline

    def marks(self) -> dict[str, int]:
        """What it knows to be committed."""
        return self.logs.marks()

    def tick(self) -> None:
        self.core.tick(self._world.now)

    def received(self, link: Link, message: m.ReplicaMessage, raw: memoryview) -> None:
        self.core.received(link.number, message, raw, self._world.now)
        if isinstance(message, m.Write | m.Open | m.Cut | m.TrimCopy) and not self._flushes:
            self._flushes = True
            self._world.at(self._world.now + self._world.random.choice((0.0, 0.0005, 0.003)), self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if self._process.role is self:
            self._process.take(self._flush_now)

    def _flush_now(self) -> None:
        if self._process.role is self:
            self.core.flush()

    def lost(self, link: Link) -> None:
        self.core.lost(link.number, self._world.now)

    def connected(self, peer: str) -> None:
        for message in self._waiting.pop(peer, ()):
            self._send(peer, message)

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview) -> None:
        self.core.answered(peer, message, raw, self._world.now)

    def unreachable(self, peer: str) -> None:
        self._waiting.pop(peer, None)
        self.core.unreachable(peer, self._world.now)

    def viewed(self, view: Versioned, is_current: bool, is_back: bool) -> None:
        self.core.seen(view, is_current, self._world.now)

    def claimed(self, record: ShardRecord, won: bool, known: bool, view: Versioned | None) -> None:
        self.core.claimed(won, known, view, self._world.now)

    # Effects

    def carry_out(self) -> None:
        process, world = self._process, self._world
        for effect in self.core.take_effects():
            if not process.is_alive:
                return
            if isinstance(effect, fx.Send):
                self._send(effect.peer, effect.message)
            elif isinstance(effect, fx.Reply):
                link = process.accepted.get(effect.link)
                if link is not None:
                    world.said(process.node, effect.message)
                    link.send(1, effect.message)
                    if effect.is_last:
                        process.close_accepted(link)
            elif isinstance(effect, fx.Serve):
                frames = frames_of(self.logs, effect.partition, effect.have, effect.epoch)
                self._served += 1
                self._serve(effect, frames)
            elif isinstance(effect, fx.ClaimShard):
                world.moment("claim", process.node)
                world.control.swap(process, effect.revision, effect.record)
            elif isinstance(effect, fx.Alarm):
                world.alarmed(process.node, effect)
            elif isinstance(effect, fx.Lead):
                process.role = leader = Leader(process, self.logs, self.state, effect, self.core.view)
                for peer in list(process.dialed):
                    process.hang_up(peer)
                leader.start()
                leader.carry_out()

    def _serve(self, effect: fx.Serve, frames: Frames) -> None:
        """A frame at a time, for as long as no newer leader was promised."""
        link = self._process.accepted.get(effect.link)
        if link is None or self._process.role is not self or not self._process.is_alive:
            self._served -= 1
            return
        if self.state.promised != effect.epoch:
            link.send(1, m.Outdated(self.state.promised, self.state.promised_term))
            self._process.close_accepted(link)
            self._served -= 1
            return
        frame = next(frames, None)
        if frame is None:
            link.send(1, m.Fetched(effect.epoch, effect.partition))
            self._served -= 1
            return
        link.send(1, *frame)
        self._world.at(self._world.now + 0.0002, self._process.take, self._serve, effect, frames)

    def pack(self, partition: str) -> None:
        if not self._served and self.logs.pack(partition, self.logs.guard(partition), self._world.salt()):
            self._world.count["packed by a follower"] += 1

    def _send(self, peer: str, message: m.ReplicaMessage) -> None:
        process = self._process
        link = process.dialed.get(peer)
        if link is not None:
            self._world.said(process.node, message)
            link.send(0, message)
        else:
            self._waiting.setdefault(peer, []).append(message)
            process.dial(peer)
