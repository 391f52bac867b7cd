"""The driver of a leader: `LeaderCore`, a writer, and a feed to each follower."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import leader_core
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.quorum import members_of, noted
from tests.cluster.simulation.disk import PARTITIONS, DiskState, MemoryLogs
from tests.cluster.simulation.feed import Cursor, cut_of, frames_behind
from tests.cluster.simulation.network import Link

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process

REDIAL_SECONDS = 0.05
SEGMENT_BYTES = 96
HAND_OVER_SECONDS = 1.0
SLOW_SECONDS = 2.0  # R10: twice in a row
UNKNOWN_SECONDS = 1.5  # without an answer that knows something: the change is asked for once more


class Leader:
    def __init__(
        self, process: Process, logs: MemoryLogs, state: DiskState, lead: fx.Lead, view: Versioned | None
    ) -> None:
        assert view is not None
        self.process = self._process = process
        self._world, self._logs, self._state = process.world, logs, state
        self.core = leader_core.LeaderCore(lead.epoch, process.node.name, lead.record, lead.ends)
        self._revision = view.revision
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._segments = dict.fromkeys(PARTITIONS, "")
        self._waiting: list[tuple[str, int, int]] = []  # (partition, lsn, value), not acknowledged
        self._syncing: list[tuple[str, int, int]] | None = None
        self._slow = 0
        self._asked: dict[str, ShardRecord] = {}  # changes of members, by claim; one may still come into force
        self._claimed: ShardRecord | None = None  # the last one, while it is not answered
        self._claimed_at = 0.0
        self._is_lost = False  # the control plane was restored from a copy of before this term
        self._successor = ""
        self._takes_after = 0.0
        self.writes_early = self._world.build.writes_early
        self.lingers = False

    def start(self) -> None:
        self._world.took_office(self._process.node, self.core.epoch)
        self._world.moment("lead", self._process.node)
        self.core.start()
        for peer in self.core.peers:
            self._process.dial(peer)

    @property
    def next_deadline(self) -> float:
        return self.core.next_deadline

    @property
    def takes(self) -> bool:
        return (self.core.is_open or self.writes_early) and self._world.now >= self._takes_after

    def marks(self) -> dict[str, int]:
        """What it knows to be committed."""
        return {key: lsn for key in PARTITIONS if (lsn := self.core.committed(key))}

    def tick(self) -> None:
        self.core.tick(self._world.now)
        self._change_members()
        if self._successor and self.core.has_all(self._successor):
            self.core.succeed(self._successor)
            self._world.count["hand-overs"] += 1
            self._successor = ""
        for peer in self.core.peers:
            self._process.dial(peer)

    # Links

    def connected(self, peer: str) -> None:
        if peer in self.core.peers:
            self.core.connected(peer)
        else:  # it is no member any more; if it is one again, it is dialled again
            self._process.hang_up(peer)

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview) -> None:
        self.core.received(peer, message, self._world.now)

    def unreachable(self, peer: str) -> None:
        self._stop_feeds(peer)
        self.core.lost(peer)
        if peer in self.core.peers:
            self._world.at(self._world.now + REDIAL_SECONDS, self._process.take, self._process.dial, peer)

    def lost(self, link: Link) -> None:
        """Of one that asked this leader."""

    def received(self, link: Link, message: m.ReplicaMessage, raw: memoryview) -> None:
        if isinstance(message, m.Poll):
            records = sum(self.core.own.values())
            link.send(1, m.Polled(not self.core.is_deposed, self.core.epoch, self.core.epoch, records))
            return
        epoch = getattr(message, "epoch", 0)
        if epoch > self.core.epoch:
            self.core.depose(f"asked for epoch {epoch}")
        link.send(1, m.Outdated(self.core.epoch))
        self._process.close_accepted(link)

    # The log

    def publish(self, partition: str, value: int) -> None:
        segment = self._segments[partition]
        segments = self._logs.segments(partition)
        if not segment or len(segments[-1].data) >= SEGMENT_BYTES:
            self._world.segments += 1
            name = f"{segments[-1].end_lsn if segments else 0:06d}-{self._world.segments:05d}"
            self._logs.open_segment(partition, name, self._world.salt())
            self._segments[partition] = name
        lsn = self._logs.append(partition, [value])
        self._world.wrote(partition, lsn, value, self.core.epoch)
        self._waiting.append((partition, lsn, value))
        self._send_on(partition)
        self._sync()

    def _sync(self) -> None:
        if self._syncing is None:
            self._syncing = self._logs.begin_sync()
            if not self._syncing:
                self._syncing = None
                return
            seconds = self._process.node.disk.sync_seconds
            self._world.at(self._world.now + seconds, self._process.take, self._synced, seconds)

    def _synced(self, seconds: float) -> None:
        begun, self._syncing = self._syncing, None
        assert begun is not None
        self._process.node.disk.point("leader sync")
        self._logs.end_sync(begun)
        for partition, _, end_lsn in begun:
            self.core.written(partition, end_lsn)
        self._slow = self._slow + 1 if seconds >= SLOW_SECONDS else 0
        if self._slow == 2:
            self.core.depose("the disk is slow")
        self._sync()

    def trim(self, partition: str) -> None:
        """Retention: all but the last two segments, if they are committed."""
        segments = self._logs.segments(partition)
        if len(segments) > 2 and segments[-2].base_lsn <= self.core.committed(partition):
            first = segments[-2].base_lsn
            self._logs.trim(partition, first)
            self._world.trimmed(partition, first)
            for peer, where in list(self._cursors):
                if where == partition:
                    self._say(peer, m.TrimCopy(self.core.epoch, partition, first))
            self._sync()

    def pack(self, partition: str) -> None:
        """Without a look at what its followers have."""
        if self._logs.pack(partition, self.core.committed(partition), self._world.salt()):
            self._world.count["packed by a leader"] += 1
            self._sync()

    def _send_on(self, partition: str, only: str = "") -> None:
        for (peer, where), cursor in list(self._cursors.items()):
            if where != partition or (only and peer != only):
                continue
            link = self._process.dialed.get(peer)
            if link is None:
                continue
            if cursor.is_waiting:
                continue
            sent = 0
            try:
                for frame, raw in frames_behind(self._logs, partition, cursor, self.core.epoch):
                    link.send(0, frame, raw)
                    sent += 1
                    if self._world.build.feed_seconds and sent == 2:  # R12: paced
                        cursor.is_waiting = True
                        when = self._world.now + self._world.build.feed_seconds
                        self._world.at(when, self._process.take, self._go_on, peer, partition, cursor)
                        break
            except KeyError:
                self._process.hang_up(peer)
                self.unreachable(peer)

    def _go_on(self, peer: str, partition: str, cursor: Cursor) -> None:
        cursor.is_waiting = False
        if self._cursors.get((peer, partition)) is cursor:
            self._send_on(partition, peer)

    def _feed(self, feed: fx.FeedFollower) -> None:
        cut, cursor = cut_of(self._logs, feed.partition, feed.segments, self.core.epoch)
        self._say(feed.peer, cut)
        self._cursors[feed.peer, feed.partition] = cursor
        self._send_on(feed.partition, feed.peer)

    def _stop_feeds(self, peer: str) -> None:
        for key in [key for key in self._cursors if key[0] == peer]:
            del self._cursors[key]

    # Members

    def hand_over(self, peer: str) -> None:
        if self.core.is_open and peer in self.core.peers and peer in self.core.record.voters:
            self._successor = peer
            self._takes_after = self._world.now + HAND_OVER_SECONDS

    def _change_members(self) -> None:
        """One step of what the operator wants: a learner, then both sets, then the new one. As `MemberChange` does."""
        if self._claimed is not None and self._world.now - self._claimed_at >= UNKNOWN_SECONDS:
            self._claimed = None
        if self._claimed is not None or not self.core.is_open or self.core.is_deposed:
            return
        if not self._revision:  # somebody else leads in a newer term
            return
        record, wanted = self.core.record, self._world.wanted
        if self._is_lost:
            self._world.count["records put back"] += 1
            self._claim(record)
        elif record.old_replicas is not None:
            self._claim(replace(record, old_replicas=None, config=record.config + 1))
        elif set(record.replicas) != set(wanted):
            new = [each for each in wanted if each not in record.members]
            if new:
                self._claim(replace(record, learners=[*record.learners, *new]))
            elif all(each in record.replicas or self.core.has_all(each) for each in wanted):
                learners = [each for each in record.learners if each not in wanted]
                joint = ShardRecord(
                    epoch=record.epoch + 1, leader=record.leader, claim="", replicas=list(wanted),
                    old_replicas=record.replicas, learners=learners, config=record.config + 1, forced=record.forced,
                )  # fmt: skip
                self._claim(joint)

    def _claim(self, wanted: ShardRecord) -> None:
        claim = self._world.unique()
        is_new = wanted.epoch > self.core.epoch
        record = msgspec.structs.replace(wanted, claim=claim, term=claim if is_new else wanted.term)
        self._claimed = self._asked[claim] = record
        self._claimed_at = self._world.now
        self._world.moment("change asked", self._process.node)
        self._world.control.swap(self._process, self._revision, record)

    def claimed(self, record: ShardRecord, won: bool, known: bool, view: Versioned | None) -> None:
        if self._claimed is not record:
            return  # answered too late
        if view is not None:
            self._take(view)
        if known:
            self._claimed = None

    def viewed(self, view: Versioned, is_current: bool, is_back: bool) -> None:
        """As `Replication.seen`, then `MemberChange.seen`: what the record says stands, whatever was answered."""
        record, own = view.record, self.core.record
        is_other = record.epoch == own.epoch and "" not in (record.term, own.term) and record.term != own.term
        if is_other or (record.epoch > own.epoch and record.leader != self.core.node):
            self.core.depose(f"{record.leader} leads epoch {record.epoch}")
            return
        self._take(view)
        self._is_lost = is_back or self._is_earlier(record)

    def _is_earlier(self, found: ShardRecord) -> bool:
        """Of before this term, or of this very term and not what this leader wrote last."""
        own = self.core.record
        if found.epoch < own.epoch:
            return True
        if found.term != own.term or found.claim in self._asked:
            return False
        return (found.replicas, found.old_replicas, found.learners) != (
            own.replicas, own.old_replicas, own.learners,
        )  # fmt: skip

    def _take(self, view: Versioned) -> None:
        record, core = view.record, self.core
        is_asked = record.claim in self._asked
        self._revision = 0 if not is_asked and record.epoch > core.epoch else view.revision
        if not is_asked:
            return
        self._asked.clear()  # the others name an older revision
        self._claimed = None
        if record.epoch > core.epoch:
            self._state.promise(record.epoch, record.term, record.forced)
            self._cursors.clear()
            core.change(record.epoch, record)
            self._world.count["changes of members"] += 1
            self._world.moment("change", self._process.node)
        else:
            was_joint = core.record.old_replicas is not None
            self._state.note_voters(noted(members_of(record, record.epoch)))
            core.settle(record)
            if was_joint:
                self._world.settled(record)
                self._world.moment("settle", self._process.node)
        for peer in [peer for peer in self._process.dialed if peer not in core.peers]:
            self._process.hang_up(peer)
            self._stop_feeds(peer)
        for peer in core.peers:
            self._process.dial(peer)

    # Effects

    def carry_out(self) -> None:
        process, world = self._process, self._world
        for effect in self.core.take_effects():
            if not process.is_alive:
                return
            if isinstance(effect, fx.Send):
                self._say(effect.peer, effect.message)
            elif isinstance(effect, fx.FeedFollower):
                self._feed(effect)
            elif isinstance(effect, fx.TermOpen):
                world.opened_term(process.node, self.core.epoch, self.core.record)
                world.moment("term open", process.node)
            elif isinstance(effect, fx.MarkCommitted):
                world.committed(process.node, self.core.epoch, effect.partition, effect.lsn)
                self._acknowledge(effect.partition, effect.lsn)
                world.moment("commit", process.node)
            elif isinstance(effect, fx.Fenced):
                record = self.core.record
                self._state.open(record.epoch, record.term, noted(members_of(record, record.epoch)))
                world.took_office(process.node, record.epoch)
            elif isinstance(effect, fx.OwnDoubt):
                self._state.distrust()
                world.alarmed(process.node, fx.Alarm("cluster.copies_disagree", effect.why))
            elif isinstance(effect, fx.Deposed):
                world.deposed(process, effect.why)

    def _acknowledge(self, partition: str, lsn: int) -> None:
        left = []
        for where, at, value in self._waiting:
            if where == partition and at < lsn:
                self._world.acknowledged(where, at, value, self.core.record)
            else:
                left.append((where, at, value))
        self._waiting = left

    def _say(self, peer: str, message: m.ReplicaMessage) -> None:
        link = self._process.dialed.get(peer)
        if link is not None:
            self._world.said(self._process.node, message)
            link.send(0, message)


def replace(
    record: ShardRecord, *, old_replicas: list[str] | None = None, learners: list[str] | None = None,
    config: int | None = None,
) -> ShardRecord:  # fmt: skip
    """The same term with other members around it."""
    return msgspec.structs.replace(
        record, old_replicas=old_replicas, learners=record.learners if learners is None else learners,
        config=record.config if config is None else config,
    )  # fmt: skip
