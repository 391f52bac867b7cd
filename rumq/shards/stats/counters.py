"""What one shard counts, added up: some sessions in each turn, so that a million of them hold nobody up.

Packets are counted where they are cut and bytes where they are read, for each connection, whether or not anybody asks;
here they are taken from there. Knows no topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rumq.shards.bus import messages as m

if TYPE_CHECKING:
    from rumq.session.state.session import Session
    from rumq.shards.turn.turn import Driver

SESSIONS_A_TURN = 128


class Counters:
    """Goes through a shard's sessions once, then calls back with its tally."""

    def __init__(self, driver: Driver, done: Callable[[m.Tally], None]) -> None:
        self._driver, self._done = driver, done
        self._left: list[Session] = []
        self._connected = self._subscriptions = 0
        self._is_under_way = False

    def begin(self) -> None:
        """Count in the turns that follow, unless that goes on already."""
        if self._is_under_way:
            return
        self._is_under_way = True
        self._left = list(self._driver.registry.sessions.values())
        self._connected = self._subscriptions = 0
        self._driver.next_turn(self._go_on)

    def _go_on(self) -> None:
        some = self._left[-SESSIONS_A_TURN:]
        del self._left[-SESSIONS_A_TURN:]
        totals = self._driver.shard_totals
        for session in some:
            self._subscriptions += len(session.asked)
            link = session.link
            if link is None:
                continue
            self._connected += 1
            transport: Any = link.transport
            if (
                transport.bytes_in or transport.bytes_out
            ):  # most clients have said nothing since the last time
                link.count()
                totals.bytes_in += transport.bytes_in
                totals.bytes_out += transport.bytes_out
                transport.bytes_in = transport.bytes_out = 0
        if self._left:
            self._driver.next_turn(self._go_on)
        else:
            self._is_under_way = False
            self._done(self._tally())

    def _tally(self) -> m.Tally:
        driver = self._driver
        totals, pump = driver.shard_totals, driver.pump
        counts = m.Counts(
            packets_in=totals.packets_in,
            packets_out=totals.packets_out,
            published=totals.published,
            delivered=totals.delivered,
            dropped=driver.drop_counters.records,
            refused=driver.refusing.refused + sum(driver.numbering.refused.values()),
            published_bytes=totals.published_bytes,
            bytes_in=totals.bytes_in + pump.bytes_in,
            bytes_out=totals.bytes_out + pump.bytes_out,
            connections=totals.connections,
            sockets=totals.sockets,
            expired=driver.registry.expired,
            handed_over=totals.handed_over,
            taken_over=totals.taken_over,
        )
        own = driver.store.own
        members = [s for share in driver.shard.sharing.shares.values() for s in share.members]
        standing = m.Standing(
            connected=self._connected,
            sessions=len(driver.registry.sessions),
            subscriptions=self._subscriptions,
            shared=sum(not subscriber.is_shard for subscriber in members),
            retained=len(driver.shard.retained),
            topics=sum(len(p.topic_names) for p in own),
            log_bytes=sum(segment.bytes for p in own for segment in p.segments.files),
            partitions=[
                m.PartitionTally(p.stream, p.number, p.first_lsn, p.next_lsn, p.committed_lsn) for p in own
            ],
        )
        return m.Tally(driver.index, driver.incarnation, counts, standing)
