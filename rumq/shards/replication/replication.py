"""Replication of a shard by its leader: what its partitions write goes to the followers, and a majority commits it.

The rules are those of `rumq.cluster.replication.leader_core`, whose effects are carried out here. The unit is the write
group: no work is done for each message. docs/explanation/replication.md"""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog.log.partition import Partition
from commitlog.log.store import Store
from rumq.admin.cluster_rows import TermRow
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.links.greeting import Greeting
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.leader_core import BEAT_SECONDS, LeaderCore
from rumq.cluster.replication.packing_members import PackingPatience
from rumq.cluster.replication.quorum import majority_of
from rumq.cluster.replication.standby.office import WAY_OUT
from rumq.loop.ports import Clock, EventSink, ReadPool, Timers
from rumq.loop.stage import Stage
from rumq.session.state.histogram import Histogram
from rumq.shards.replication.asker import Askers
from rumq.shards.replication.copy_notes import CopyNotes
from rumq.shards.replication.feeding.copies import Copies
from rumq.shards.replication.feeding.feeder import Feeds
from rumq.shards.replication.feeding.feeding import Feeding
from rumq.shards.replication.follower_links import FollowerLinks, Network
from rumq.shards.replication.leader_disk import LeaderCommit
from rumq.shards.replication.majority_waits import MajorityWaits
from rumq.shards.replication.succession import Succession
from rumq.shards.replication.term import Term
from rumq.shards.replication.term_row import term_row

ALL_BYTES = 1 << 62  # as uncommitted: nobody's records are taken


class Replication(Stage):
    """The leader's side of one shard. is_open: clients may be served"""

    def __init__(
        self, term: Term, store: Store, commit: Callable[[], LeaderCommit], reader: ReadPool, timers: Timers,
        clock: Clock, events: EventSink, network: Network,
    ) -> None:  # fmt: skip
        """commit: group commit, which exists later"""
        self._term, self._timers, self._clock, self._events = term, timers, clock, events
        self._copies = Copies(store, network.watch, self.end_turn, PackingPatience(term.shard))
        copied = self._copies.by_key
        self.core = LeaderCore(term.epoch, term.node, term.record, self._copies.ends(), majority_of(term.view.replicas))
        self._notes = CopyNotes(self.core, copied, reader, term.noted, clock.monotonic)
        self.askers = Askers(
            lambda: (self.core.epoch, self.core.record.term), lambda: sum(self.core.own.values()), self.depose
        )
        self._links = FollowerLinks(network.connect, timers, clock, events, term.resolve, self)
        self._links.seen(term.view, term.shard)
        feeds = Feeds(reader, timers, events, lambda: self.core.epoch, self._compare)
        self._feeding = Feeding(self._copies, self.core, feeds, self._links.link)
        self._waits = MajorityWaits(term.shard, commit, clock, events)
        self.succession = Succession(
            term.shard, self.core, [each.partition for each in copied.values()], commit, timers, clock, events,
            self._carry_out,
        )  # fmt: skip
        self._is_ended = self._was_opened = False
        self._copies.patience.seen(term.view, clock.monotonic)
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
        self._copies.patience.seen(view, self._clock.monotonic)
        if self._term.shard < len(view.shards):
            record = view.shards[self._term.shard].record
            own = self.core.record
            is_other = record.epoch == own.epoch and "" not in (record.term, own.term) and record.term != own.term
            if is_other or (record.epoch > own.epoch and record.leader != self._term.node):
                self.depose(f"{record.leader or 'nobody'} leads epoch {record.epoch}, this term has {own.epoch}")

    def change(self, epoch: int, record: ShardRecord) -> None:
        """As `LeaderCore.change`: this leader has claimed its shard anew, with other members."""
        self._feeding.stop()  # every copy is compared anew: what came behind that answer would be sent twice
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

    # What is written

    @property
    def acknowledged(self) -> Histogram:
        """How long groups have waited for a majority, in seconds."""
        return self._waits.acknowledged

    def end_turn(self) -> None:
        """Send what was written to those who have all before it."""
        self._feeding.end_turn()

    def written(self, index: int) -> None:
        """A group of a partition has ended, and `Partition.complete` was called."""
        copied = self._copies.maybe_at(index)
        if copied is None:
            return
        self._feeding.group_ended(copied)
        partition = copied.partition
        end = partition.durable_lsn if partition.writer.sync_groups else partition.written_lsn
        self._waits.written(copied, end)
        self.core.written(copied.source.key, end)
        self._carry_out()
        self._feeding.go_on(copied)

    def packable_below(self, partition: Partition) -> int:
        """The lsn up to which segments may be packed now. 0: none, while a node that has a copy is away or cannot know
        packed files, or while a copy is sent what it lacks by its bytes."""
        copied = self._copies.maybe_at(partition.index)
        is_over = self._copies.patience.is_over(self._clock.monotonic)
        if copied is None or not is_over or copied.source.lagging or not self._was_opened:
            return 0
        return min(partition.committed_lsn, self.core.committed(copied.source.key))

    def uncommitted_bytes(self, index: int) -> int:
        """What a partition has written that no majority has yet: backpressure counts it as unwritten."""
        if self.succession.is_handing_over:
            return ALL_BYTES
        copied = self._copies.maybe_at(index)
        return copied.unsettled_bytes if copied is not None else 0

    # Followers: what the links tell

    def greeting(self, peer: str) -> Greeting:
        term = self._term
        return Greeting("replica", term.cluster, term.node, term.shard, self.core.epoch)

    def linked(self, peer: str) -> None:
        self.core.connected(peer)
        self._carry_out()

    def lost(self, peer: str) -> None:
        self._feeding.lost(peer)
        self.core.lost(peer)
        self._carry_out()

    def received(self, peer: str, message: m.ReplicaMessage) -> bool:
        """returns: whether it has changed anything; the answer to a beat mostly has not"""
        self.core.received(peer, message, self._clock.monotonic)
        has_changed = self._carry_out()
        if isinstance(message, m.Heard):
            return has_changed
        if isinstance(message, m.Synced):
            self._feeding.synced(peer, message)
        return True

    def drained(self, peer: str) -> None:
        self._feeding.drained(peer)

    def _compare(self, peer: str, partition: str) -> None:
        self.core.compare_with(peer, partition)
        self._carry_out()

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
        if isinstance(effect, fx.MarkCommitted):
            self._waits.committed(self._copies.by_key[effect.partition], effect.lsn)
        elif isinstance(effect, fx.Send):
            link = self._links.link(effect.peer)
            if link is not None:
                link.say(effect.message)
        elif isinstance(effect, fx.FeedFollower):
            self._feeding.begin(effect)
        elif isinstance(effect, fx.TermOpen):
            self._opened()
            self._events.tell("cluster.term_open", shard=self._term.shard, epoch=self.core.epoch)
        elif isinstance(effect, fx.Fenced):
            self._term.fenced(self.core.record)
        elif isinstance(effect, fx.OwnDoubt):
            self._term.doubted(effect.why)
            self._events.tell("cluster.copies_disagree", shard=self._term.shard, why=f"{effect.why}: {WAY_OUT}")
        elif isinstance(effect, fx.QuorumLost):
            self._events.tell("cluster.quorum_lost", shard=self._term.shard, unheard=effect.unheard)
            self._term.quorum(False)
        elif isinstance(effect, fx.QuorumBack):
            self._events.tell("cluster.quorum_back", shard=self._term.shard)
            self._term.quorum(True)
        elif isinstance(effect, fx.Deposed) and not self._is_ended:
            self._is_ended = True
            self._events.tell("cluster.deposed", shard=self._term.shard, epoch=self.core.epoch, why=effect.why)
            self._links.close()  # followers may promise others at once: R15
            self._term.end()

    def _opened(self) -> None:
        self._was_opened = True
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._timers.next_turn(call)

    # Time

    def _tick(self) -> None:
        if self._is_ended:
            return
        now = self._clock.monotonic
        self._timers.later(BEAT_SECONDS, self._tick)  # first of all: a leader without beats is no leader
        self.core.tick(now)
        self._carry_out()
        self._links.tick()
        self.succession.look(now)
        self._waits.look(now)
        self._notes.look(now)

    def figures(self) -> dict[str, Any]:
        """For the operator: committed lsns by partition, and how many records each follower lacks; None: it is away."""
        committed = {key: self.core.committed(key) for key in self._copies.by_key}
        return {"open": self.core.is_open, "committed": committed, "behind": self.core.behind()}

    def term_row(self) -> TermRow:
        """For the operator."""
        return term_row(self._term.shard, self.core, self._copies.by_key.values(), self._clock.monotonic)

    def close(self) -> None:
        self._is_ended = True
        self._links.close()
        self.askers.close()
        self.succession.close()
        self._copies.close()
