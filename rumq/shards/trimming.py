"""Segments whose time has come, or that are too many: looked for now and then, removed beside the loop.

What the journal needs stays, and what lasting sessions or the exporter have not had, as far as is configured."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rumq.shards.exports import Exports

if TYPE_CHECKING:
    from rumq.shards.driver import Driver


class Trimming:
    def __init__(self, driver: Driver, retain_for_sessions_bytes_max: int, exports: Exports | None) -> None:
        self._driver, self._exports = driver, exports
        self._for_sessions = retain_for_sessions_bytes_max

    def look(self) -> None:
        driver = self._driver
        now_us = driver.retention_clock.look(driver.now_us, driver.monotonic)
        if self._for_sessions and driver.peers.others:
            driver.peers.tell_needs(driver.keeping.wanted_lsn)
        for partition in driver.store.own:
            if partition.retention_due(now_us):
                self._trim(partition, now_us)
        internal = driver.store.internal
        removal = driver.keeping.take_removal()
        if removal is not None:
            driver.writer.submit(removal.run, partial(self._trimmed, internal, removal), internal.index)

    def _trim(self, partition: Any, now_us: int | None) -> None:
        driver, exports = self._driver, self._exports
        wanted = None
        if self._for_sessions:
            wanted = driver.peers.wanted_lsn(partition.index, driver.keeping.wanted_lsn(partition.index))
        removal = partition.take_retention(
            now_us, driver.keeping.keep_lsn(partition.index), wanted, self._for_sessions,
            exports.wanted_lsn(partition, driver.reader) if exports is not None else None,
            exports.bytes_max if exports is not None else 0,
        )  # fmt: skip
        if removal is not None:
            remove = partial(self._remove, partition, removal)
            driver.losses.before_removal(partition.index, removal.first_lsn, remove)

    def _remove(self, partition: Any, removal: Any) -> None:
        self._driver.writer.submit(removal.run, partial(self._trimmed, partition, removal), partition.index)

    def _trimmed(self, partition: Any, removal: Any, _: Any, fault: BaseException | None) -> None:
        partition.segments.removed(removal)
        where = {"stream": partition.stream, "partition": partition.number}
        if fault is not None:
            self._driver.tell("log.failed", **where, why=f"segments could not be removed: {fault}")
        else:
            first_lsn, count = partition.first_lsn, len(removal.paths)
            self._driver.tell("log.trimmed", **where, first_lsn=first_lsn, segments=count)
