"""Replication of a shard by its leader: what its partitions write goes to the followers, and a majority commits it.

The rules are those of `rumq.cluster.replication.leader_core`, whose effects are carried out here. The unit is the write
group: no work is done for each message. docs/replication.md"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from commitlog.store import Store
from rumq.admin.cluster_rows import TermRow
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.links.greeting import Greeting
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.leader_core import BEAT_SECONDS, LeaderCore
from rumq.cluster.replication.office import WAY_OUT
from rumq.cluster.replication.quorum import majority_of
from rumq.session.state.histogram import Histogram
from rumq.shards.replication.asker import Askers
from rumq.shards.replication.copied_partition import CopiedPartition, Piece, Trimmed
from rumq.shards.replication.copy_notes import CopyNotes
from rumq.shards.replication.feeder import Feeder, Feeds
from rumq.shards.replication.follower_links import FollowerLinks, Network
from rumq.shards.replication.hand_over import Clients, HandOver
from rumq.shards.replication.leader_disk import Commit, DiskWatch, Problem, maybe_problem
from rumq.shards.replication.piece_frames import frames_of
from rumq.shards.replication.term import Term
from rumq.shards.replication.term_row import Copied, term_row
from rumq.shards.turn.ports import Clock, EventSink, ReadPool, Timers

LOOK_SECONDS = 0.01  # of a hand-over
SUCCEED_SECONDS = 0.2  # until a leader that resigns ends
WAIT_SECONDS_MAX = 10.0  # of a client, for a majority
ALL_BYTES = 1 << 62  # as uncommitted: nobody's records are taken


class Replication:
    """The leader's side of one shard. is_open: clients may be served"""

    def __init__(
        self, term: Term, store: Store, commit: Callable[[], Commit], reader: ReadPool, timers: Timers, clock: Clock,
        events: EventSink, network: Network,
    ) -> None:  # fmt: skip
        """commit: group commit, which exists later"""
        assert store.internal is not None
        self._term, self._commit = term, commit
        self._timers, self._clock, self._events = timers, clock, events
        self._end_waits_at = 0.0
        self.disk = DiskWatch(self, term.shard, events)
        self.acknowledged = Histogram()
        self._has_news = False
        self._loop_thread = threading.get_ident()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        network.watch(self._fd, self._awake)
        self._copied: dict[str, Copied] = {}
        self._by_index: dict[int, Copied] = {}
        for partition in [*store.own, store.internal]:
            key = partition.directory.removeprefix(f"{store.root}/")
            copied = Copied(CopiedPartition(key, partition, self._wake))
            self._copied[key] = self._by_index[partition.index] = copied
            if copied.is_quorum:
                # What was adopted is committed as soon as the term is open, and nobody is served before.
                partition.replicated_lsn = partition.next_lsn
        ends = {key: copied.partition.next_lsn for key, copied in self._copied.items()}
        self.core = LeaderCore(term.epoch, term.node, term.record, ends, majority_of(term.view.replicas))
        self._notes = CopyNotes(self.core, self._copied, reader, term.noted, clock.monotonic)
        self._feeds = Feeds(reader, timers, events, lambda: self.core.epoch, self._compare)
        self.askers = Askers(
            lambda: (self.core.epoch, self.core.record.term), lambda: sum(self.core.own.values()), self.depose
        )
        self._links = FollowerLinks(network.connect, timers, clock, events, term.resolve, self)
        self._links.seen(term.view, term.shard)
        self._hand_over: HandOver | None = None
        self._is_ended = self._was_opened = False
        self._waiting: list[Callable[[], None]] = []

    # The term

    @property
    def is_open(self) -> bool:
        """Whether the term was opened: who is served since then goes on, also while members change."""
        return self._was_opened

    def when_open(self, call: Callable[[], None]) -> None:
        """Call once the term is open, in a turn of its own."""
        if self._was_opened:
            self._timers.next_turn(call)
        else:
            self._waiting.append(call)

    def begin(self) -> None:
        """Once, when everything is built."""
        self.core.start()
        self._carry_out()
        self._links.want(self.core.peers)
        self._tick()

    def seen(self, view: View) -> None:
        """A new view of the cluster."""
        self._links.seen(view, self._term.shard)
        if self._term.shard < len(view.shards):
            record = view.shards[self._term.shard].record
            own = self.core.record
            is_other = (
                record.epoch == own.epoch and "" not in (record.term, own.term) and record.term != own.term
            )
            if is_other or (record.epoch > own.epoch and record.leader != self._term.node):
                self.depose(
                    f"{record.leader or 'nobody'} leads epoch {record.epoch}, this term has {own.epoch}"
                )

    def change(self, epoch: int, record: ShardRecord) -> None:
        """As `LeaderCore.change`: this leader has claimed its shard anew, with other members."""
        for copied in self._copied.values():
            for feeder in copied.feeders.values():
                feeder.stop()  # every copy is compared anew: what came behind that answer would be sent twice
        self.core.change(epoch, record)
        self._members_changed()

    def settle(self, record: ShardRecord) -> None:
        """As `LeaderCore.settle`."""
        self.core.settle(record)
        self._members_changed()

    def _members_changed(self) -> None:
        self._links.want(self.core.peers)
        self._carry_out()

    def depose(self, why: str) -> None:
        self.core.depose(why)
        self._carry_out()

    def hand_over(self, to: str, done: Callable[[str], None], clients: Clients | None = None) -> None:
        """Have a follower lead instead; this process ends then. done: told why that has failed

        clients: whose connections go on there; None: nobody's do"""
        if to not in self.core.peers:
            done(f"{to} is no follower of shard {self._term.shard}")
        elif self._hand_over is not None:
            done(f"the shard is handed over to {self._hand_over.to}")
        else:
            self._hand_over = HandOver(
                to, self._clock.monotonic, commit=self._commit(), has_all=self.core.has_all,
                succeed=self._succeed, done=done, clients=clients,
            )  # fmt: skip
            self._timers.later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Go on with the hand-over."""
        if self._hand_over is not None and not self._is_ended:
            self._hand_over.look(self._clock.monotonic)
            if self._hand_over.is_over:
                self._hand_over = None
            else:
                self._timers.later(LOOK_SECONDS, self._look)

    def disk_problem(self) -> Problem | None:
        """Why this leader's disk is not good enough."""
        commit = self._commit()
        return maybe_problem([copied.partition for copied in self._copied.values()], commit, commit.space)

    def resign(self, to: str, why: str) -> None:
        """Have a follower lead, and wait for nothing: what is pending here was promised to nobody."""
        self._succeed(to)  # if this is lost, it finds the leader gone
        self._timers.later(SUCCEED_SECONDS, lambda: self.depose(f"this node cannot lead: {why}"))

    def _succeed(self, peer: str) -> None:
        self.core.succeed(peer)
        self._carry_out()

    # What is written

    def _wake(self) -> None:
        """On the thread that writes: something was told."""
        if not self._has_news:
            self._has_news = True
            if threading.get_ident() != self._loop_thread:
                os.eventfd_write(self._fd, 1)

    def _awake(self) -> None:
        os.eventfd_read(self._fd)
        self.end_turn()

    def end_turn(self) -> None:
        """Send what was written to those who have all before it."""
        if self._has_news:
            self._has_news = False
            for copied in self._copied.values():
                self._send(copied)

    def _send(self, copied: Copied) -> None:
        source = copied.source
        was_irregular = source.is_irregular
        told = source.take()
        if source.is_irregular and not was_irregular:
            for feeder in copied.feeders.values():
                feeder.stop()
            copied.group_bytes = 0
        pieces = [piece for piece in told if isinstance(piece, Piece)]
        if pieces:
            copied.group_bytes += sum(len(piece.data) for piece in pieces)
            live = [feeder for feeder in copied.feeders.values() if feeder.is_live]
            if live:
                frames = frames_of(pieces, self.core.epoch, source.key)
                for feeder in live:
                    feeder.told(frames, pieces[-1].after)
        for trim in told:
            if isinstance(trim, Trimmed):
                for feeder in copied.feeders.values():
                    feeder.trimmed(trim)

    def written(self, index: int) -> None:
        """A group of a partition has ended, and `Partition.complete` was called."""
        copied = self._by_index.get(index)
        if copied is None:
            return
        self._send(copied)
        partition, key = copied.partition, copied.source.key
        if copied.source.group_ended():
            self.core.compare(key)
        end = partition.durable_lsn if partition.writer.sync_groups else partition.written_lsn
        if copied.is_quorum and end > partition.committed_lsn:
            copied.unsettled.append((end, copied.group_bytes, self._clock.monotonic))
            copied.unsettled_bytes += copied.group_bytes
        copied.group_bytes = 0
        self.core.written(key, end)
        self._carry_out()
        if copied.source.lagging:
            for feeder in list(copied.feeders.values()):
                feeder.go_on()

    def uncommitted_bytes(self, index: int) -> int:
        """What a partition has written that no majority has yet: backpressure counts it as unwritten."""
        if self._hand_over is not None:
            return ALL_BYTES
        copied = self._by_index.get(index)
        return copied.unsettled_bytes if copied is not None else 0

    # Followers: what the links tell

    def greeting(self, peer: str) -> Greeting:
        term = self._term
        return Greeting("replica", term.cluster, term.node, term.shard, self.core.epoch)

    def linked(self, peer: str) -> None:
        self.core.connected(peer)
        self._carry_out()

    def lost(self, peer: str) -> None:
        for copied in self._copied.values():
            copied.places.pop(peer, None)
            feeder = copied.feeders.pop(peer, None)
            if feeder is not None:
                feeder.stop()
        self.core.lost(peer)
        self._carry_out()

    def received(self, peer: str, message: m.ReplicaMessage) -> bool:
        """returns: whether it has changed anything; the answer to a beat mostly has not"""
        self.core.received(peer, message, self._clock.monotonic)
        has_changed = self._carry_out()
        if isinstance(message, m.Heard):
            return has_changed
        if isinstance(message, m.Synced):
            copied = self._copied.get(message.partition)
            if copied is None:
                return True
            copied.places[peer] = (message.name, message.stop)
            feeder = copied.feeders.get(peer)
            if feeder is not None:
                feeder.synced(message.name, message.stop)
        return True

    def drained(self, peer: str) -> None:
        for copied in self._copied.values():
            feeder = copied.feeders.get(peer)
            if feeder is not None:
                feeder.go_on()

    def _compare(self, peer: str, partition: str) -> None:
        self.core.compare_with(peer, partition)
        self._carry_out()

    def _feed(self, feed: fx.Feed) -> None:
        link, copied = self._links.link(feed.peer), self._copied.get(feed.partition)
        if link is None or copied is None:
            return
        feeder = copied.feeders.get(feed.peer)
        if feeder is None:
            feeder = copied.feeders[feed.peer] = Feeder(copied.source, link, self._feeds)
        if copied.source.is_irregular:
            return  # compared anew when the group has ended
        feeder.begin(feed.segments)

    # Effects

    def _carry_out(self) -> bool:
        """returns: whether there was anything to carry out"""
        has_changed = False
        while effects := self.core.take_effects():
            has_changed = True
            for effect in effects:
                self._do(effect)
        return has_changed

    def _do(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Committed):
            self._committed(self._copied[effect.partition], effect.lsn)
        elif isinstance(effect, fx.Send):
            link = self._links.link(effect.peer)
            if link is not None:
                link.say(effect.message)
        elif isinstance(effect, fx.Feed):
            self._feed(effect)
        elif isinstance(effect, fx.TermOpen):
            self._opened()
            self._events.tell("cluster.term_open", shard=self._term.shard, epoch=self.core.epoch)
        elif isinstance(effect, fx.Fenced):
            self._term.fenced(self.core.record)
        elif isinstance(effect, fx.OwnDoubt):
            self._term.doubted(effect.why)
            self._events.tell(
                "cluster.copies_disagree", shard=self._term.shard, why=f"{effect.why}: {WAY_OUT}"
            )
        elif isinstance(effect, fx.QuorumLost):
            self._events.tell("cluster.quorum_lost", shard=self._term.shard, unheard=effect.unheard)
            self._term.quorum(False)
        elif isinstance(effect, fx.QuorumBack):
            self._events.tell("cluster.quorum_back", shard=self._term.shard)
            self._term.quorum(True)
        elif isinstance(effect, fx.Deposed) and not self._is_ended:
            self._is_ended = True
            self._events.tell(
                "cluster.deposed", shard=self._term.shard, epoch=self.core.epoch, why=effect.why
            )
            self._links.close()  # followers may promise others at once: R15
            self._term.end()

    def _opened(self) -> None:
        self._was_opened = True
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._timers.next_turn(call)

    def _committed(self, copied: Copied, lsn: int) -> None:
        if not copied.is_quorum:
            return
        unsettled = copied.unsettled
        now = self._clock.monotonic
        while unsettled and unsettled[0][0] <= lsn:
            _, size, written_at = unsettled.popleft()
            copied.unsettled_bytes -= size
            self.acknowledged.observe(now - written_at)
        self._commit().replicated(copied.partition.index, lsn)

    # Time

    def _tick(self) -> None:
        if self._is_ended:
            return
        now = self._clock.monotonic
        self._timers.later(BEAT_SECONDS, self._tick)  # first of all: a leader without beats is no leader
        self.core.tick(now)
        self._carry_out()
        self._links.tick()
        if self._hand_over is None:
            self.disk.look(now)
        self._end_waits(now)
        self._notes.look(now)

    def _end_waits(self, now: float) -> None:
        """Who waits for copies that do not come tries elsewhere, or again: docs/replication.md, "Below a majority"."""
        if now < self._end_waits_at:
            return
        self._end_waits_at = now + 1.0
        count = self._commit().give_up(WAIT_SECONDS_MAX, "too few copies of the log answer")
        if count:
            self._events.tell("cluster.waits_ended", shard=self._term.shard, clients=count)

    def figures(self) -> dict[str, Any]:
        """For the operator: committed lsns by partition, and how many records each follower lacks; None: it is away."""
        committed = {key: self.core.committed(key) for key in self._copied}
        return {"open": self.core.is_open, "committed": committed, "behind": self.core.behind()}

    def term_row(self) -> TermRow:
        """For the operator."""
        return term_row(self._term.shard, self.core, self._copied.values(), self._clock.monotonic)

    def close(self) -> None:
        self._is_ended = True
        self._links.close()
        self.askers.close()
        for copied in self._copied.values():
            copied.partition.writer.tap = None
        os.close(self._fd)
