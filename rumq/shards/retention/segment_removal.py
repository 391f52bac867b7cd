"""Segments whose time has come, or that are too many: looked for now and then, removed beside the loop.

What the journal needs stays, and what lasting sessions or the exporter have not had, as far as is configured.
A segment to which nothing comes is ended here once it is old: only what is finished can go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rumq.shards.retention.disk_space import DiskSpace
from rumq.shards.retention.export_positions import ExportPositions

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver

ROLL_SECONDS = 10.0  # a segment that could not be ended is tried again


class SegmentRemover:
    def __init__(
        self,
        driver: Driver,
        retain_for_sessions_bytes_max: int,
        exports: ExportPositions | None,
        disk: DiskSpace,
    ) -> None:
        self._driver, self._exports, self._disk = driver, exports, disk
        self._for_sessions = retain_for_sessions_bytes_max
        self._next_rolls: dict[int, float] = {}

    def look(self) -> None:
        driver = self._driver
        now_us = driver.retention_clock.look(driver.now_us, driver.monotonic)
        if self._for_sessions and driver.peers.others:
            driver.peers.tell_needs(driver.keeping.wanted_lsn)
        for partition in driver.store.own:
            if partition.wants_to_roll(driver.now_us):
                self._roll(partition)
            if partition.retention_due(now_us):
                self._trim(partition, now_us)
        internal = driver.store.internal
        removal = driver.keeping.take_removal()
        if removal is not None:
            self._remove(internal, removal, "state")

    def carry_out(self, partition: Any, removal: Any, why: str) -> None:
        """Remove segments, beside the loop, once what somebody loses by it is counted. why: as `log.trimmed` says."""
        remove = partial(self._remove, partition, removal, why)
        self._driver.removal_losses.before_removal(partition.index, removal.first_lsn, remove)

    def _remove(self, partition: Any, removal: Any, why: str) -> None:
        records = removal.first_lsn - partition.first_lsn
        size = sum(segment.bytes for segment in partition.segments.files if segment.path in removal.paths)
        self._driver.writer.submit(
            removal.run, partial(self._trimmed, partition, removal, (records, size, why)), partition.index
        )

    def _roll(self, partition: Any) -> None:
        driver = self._driver
        if driver.monotonic >= self._next_rolls.get(partition.index, 0.0):
            self._next_rolls[partition.index] = driver.monotonic + ROLL_SECONDS
            driver.writing.roll(partition.index)

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
            self.carry_out(partition, removal, "retention")

    def _trimmed(
        self, partition: Any, removal: Any, gone: tuple[int, int, str], _: Any, fault: BaseException | None
    ) -> None:
        partition.removed(removal)
        where = {"stream": partition.stream, "partition": partition.number}
        if fault is not None:
            self._driver.tell("log.failed", **where, why=f"segments could not be removed: {fault}")
            return
        if not removal.done:
            return
        records, size, why = gone
        self._disk.went(removal, records, size, why)
        self._driver.tell(
            "log.trimmed", **where, first_lsn=partition.first_lsn, segments=len(removal.paths), why=why
        )
