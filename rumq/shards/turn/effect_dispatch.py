"""What the router asks for, one effect after the other: to the clients, to the disk, to other shards, to the journal.

Knows no command and no turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from router import commands as c
from router.effects import (
    CatchUpPaused,
    Deliver,
    DeliverRetained,
    FindRetained,
    FindStart,
    Merged,
    ReadCold,
    RecordsLost,
    ReplayStarted,
)

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver

COLD_READ_BYTES = 1 << 20


class EffectDispatch:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def carry_out(self, effect: Any) -> None:
        driver = self._driver
        kind = type(effect)
        if kind is Deliver:
            driver.delivering.deliver(effect)
        elif kind is DeliverRetained:
            driver.delivering.deliver_retained(effect)
        elif kind is CatchUpPaused:
            driver.delivering.more(effect)
        elif kind is ReadCold:
            self._read_cold(effect)
        elif kind is FindStart:
            self._find_start(effect)
        elif kind is FindRetained:
            driver.queries.find_retained(effect)
        elif kind is Merged:
            self._merged(effect)
        elif kind is ReplayStarted:
            session = driver.registry.sessions.get(effect.reader.key)
            if session is not None:
                driver.journal.replay_started(session, effect.reader.number, effect.reader.cursors)
        elif kind is RecordsLost:
            self._gone(effect)
        else:
            driver.shares.carry_out(effect)

    def read(
        self, index: int, lsn: int, done: Callable[[list[Any] | None, BaseException | None], None]
    ) -> None:
        """Read whole chunks of a partition, from `lsn` on, wherever they are."""
        driver = self._driver
        partition = driver.store.partitions[index]
        if partition.is_mirrored:
            driver.queries.read(index, lsn, done)
        else:
            driver.reader.submit(partition.cold_read(lsn, COLD_READ_BYTES).run, done)

    def _gone(self, effect: RecordsLost) -> None:
        driver = self._driver
        if driver.store.partitions[effect.partition].is_volatile:
            return  # numbers about the broker that nobody came for: newer ones are there
        if not effect.reader.group.wants.is_shard:  # another shard counts what its own readers lose
            driver.losses.lost(effect)

    def _merged(self, effect: Merged) -> None:
        session = self._driver.registry.sessions.get(effect.key)
        if session is not None:
            self._driver.journal.merged(session, effect.asked, effect.reader.number)

    def _read_cold(self, effect: ReadCold) -> None:
        driver = self._driver

        def done(chunks: list[Any] | None, fault: BaseException | None) -> None:
            if fault is not None:
                partition = driver.store.partitions[effect.partition]
                driver.tell("log.failed", stream=partition.stream, partition=partition.number, why=str(fault))
            driver.commands.put(c.ColdRead(effect.partition, effect.lsn, chunks or []))

        self.read(effect.partition, effect.lsn, done)

    def _find_start(self, effect: FindStart) -> None:
        driver = self._driver
        if driver.doors is None:
            driver.finding.find(effect)
            return
        owner = None
        if effect.topic is not None:
            where = driver.store.partitions[driver.store.place(effect.topic.decode())]
            owner = where.owner if where.is_mirrored else driver.index
        local = partial(driver.finding.find, effect) if owner in (None, driver.index) else None
        driver.queries.find_start(effect, local, owner)
