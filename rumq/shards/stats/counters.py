"""The statistics of one shard, added up: some sessions in each turn, so that a million of them delay nobody.

Packets are counted where they are parsed and bytes where they are read, on each connection; here they are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from commitlog import Store
from router.shard import ShardRouter
from rumq.loop.ports import Timers
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus import messages as m
from rumq.shards.bus.shard_tally import Counts, PartitionTally, Standing

SESSIONS_A_TURN = 128


class SocketBytes(Protocol):
    """Of connections that are closed: `rumq.net.pump`."""

    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class CountedShard:
    """The parts of a shard that have numbers to tell. incarnation: of this run of the shard"""

    index: int
    incarnation: int
    store: Store
    router: ShardRouter
    registry: Registry
    totals: ShardTotals
    drop_counters: DropCounters


class Counters:
    """Goes through a shard's sessions once, then calls back with its tally."""

    def __init__(
        self,
        shard: CountedShard,
        timers: Timers,
        sockets: Callable[[], SocketBytes],
        refused: Callable[[], int],
    ) -> None:
        """refused: PUBLISH packets that were refused, so far"""
        self.shard = shard
        self._timers, self._sockets, self._refused = timers, sockets, refused
        self._done: Callable[[m.Tally], None] | None = None
        self._left: list[Session] = []
        self._connected = self._subscriptions = 0

    def count(self, done: Callable[[m.Tally], None]) -> None:
        """Count in the turns that follow, unless that is under way."""
        if self._done is not None:
            return
        self._done = done
        self._left = list(self.shard.registry.sessions.values())
        self._connected = self._subscriptions = 0
        self._timers.next_turn(self._go_on)

    def _go_on(self) -> None:
        some = self._left[-SESSIONS_A_TURN:]
        del self._left[-SESSIONS_A_TURN:]
        for session in some:
            self._count(session)
        if self._left:
            self._timers.next_turn(self._go_on)
            return
        done, self._done = self._done, None
        assert done is not None
        done(self._tally())

    def _count(self, session: Session) -> None:
        self._subscriptions += len(session.asked)
        link = session.link
        if link is None:
            return
        self._connected += 1
        transport = link.transport
        if transport.bytes_in or transport.bytes_out:  # most clients have sent nothing since the last time
            link.count()
            self.shard.totals.bytes_in += transport.bytes_in
            self.shard.totals.bytes_out += transport.bytes_out
            link.client.policy.count(transport)
            link.bytes_in += transport.bytes_in
            link.bytes_out += transport.bytes_out
            transport.bytes_in = transport.bytes_out = 0

    def _tally(self) -> m.Tally:
        totals, sockets = self.shard.totals, self._sockets()
        counts = Counts(
            packets_in=totals.packets_in,
            packets_out=totals.packets_out,
            published=totals.published,
            delivered=totals.delivered,
            dropped=self.shard.drop_counters.records,
            refused=self._refused(),
            published_bytes=totals.published_bytes,
            bytes_in=totals.bytes_in + sockets.bytes_in,
            bytes_out=totals.bytes_out + sockets.bytes_out,
            connections=totals.connections,
            sockets=totals.sockets,
            expired=self.shard.registry.expired,
            handed_over=totals.handed_over,
            taken_over=totals.taken_over,
        )
        own = self.shard.store.own
        members = [s for share in self.shard.router.sharing.shares.values() for s in share.members]
        standing = Standing(
            connected=self._connected,
            sessions=len(self.shard.registry.sessions),
            subscriptions=self._subscriptions,
            shared=sum(not subscriber.is_shard for subscriber in members),
            retained=len(self.shard.router.retained),
            topics=sum(len(p.topic_names) for p in own),
            log_bytes=sum(p.segments.bytes for p in own),
            partitions=[PartitionTally(p.stream, p.number, p.first_lsn, p.next_lsn, p.committed_lsn) for p in own],
        )
        return m.Tally(self.shard.index, self.shard.incarnation, counts, standing)
