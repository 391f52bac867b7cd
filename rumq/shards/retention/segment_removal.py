"""Removal of segments past their retention time or size, looked for once a second and carried out beside the loop.

What the journal needs stays, and as far as configured what persistent sessions or the exporter have not had. A segment
that nothing is appended to is ended here once it is old: only finished segments can go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from commitlog import Partition, Store
from commitlog.write.retention import SegmentRemoval
from rumq.loop.ports import Call, Clock, EventSink, ReadPool
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.clock_monitor import ClockMonitor

ROLL_SECONDS = 10.0  # until sealing a segment that could not be sealed is tried again
Removed = Callable[[SegmentRemoval, int, int, str], None]


class SegmentRemover:
    def __init__(
        self, store: Store, bounds: RetentionBounds, clock: Clock, writer: ReadPool, events: EventSink,
        *, sessions_bytes_max: int, roll: Callable[[int], None], before_removal: Callable[[int, int, Call], None],
    ) -> None:  # fmt: skip
        """sessions_bytes_max: kept of each partition, beyond retention, for persistent sessions

        roll: ends the active segment of a partition; before_removal: counts what readers lose of a partition below an
        lsn, then calls back"""
        self._store, self._bounds, self._clock, self._writer, self._events = (
            store,
            bounds,
            clock,
            writer,
            events,
        )
        self._clock_monitor = ClockMonitor(store, writer, events, clock)
        self._sessions_bytes_max = sessions_bytes_max
        self.roll, self._before_removal = roll, before_removal
        self.on_removed: list[Removed] = []  # each is called with (removal, records, bytes, why)
        self._next_rolls: dict[int, float] = {}

    def look(self) -> None:
        now_us = self._clock_monitor.look(self._clock.now_us, self._clock.monotonic)
        if self._sessions_bytes_max:
            self._bounds.tell_needs()
        for partition in self._store.own:
            if partition.wants_to_roll(self._clock.now_us):
                self._roll_old(partition)
            if partition.retention_due(now_us):
                self._trim(partition, now_us)
        removal = self._bounds.journal_removal()
        if removal is not None and self._store.internal is not None:
            self._remove(self._store.internal, removal, "state")

    def carry_out(self, partition: Partition, removal: SegmentRemoval, why: str) -> None:
        """Remove segments, beside the loop, once what somebody loses by it is counted. why: as `log.trimmed` says"""
        remove = partial(self._remove, partition, removal, why)
        self._before_removal(partition.index, removal.first_lsn, remove)

    def _remove(self, partition: Partition, removal: SegmentRemoval, why: str) -> None:
        records = removal.first_lsn - partition.first_lsn
        size = sum(segment.disk_bytes for segment in partition.segments.files if segment.path in removal.paths)

        def done(_: None, fault: BaseException | None) -> None:
            partition.removed(removal)
            where = {"stream": partition.stream, "partition": partition.number}
            if fault is not None:
                self._events.tell("log.failed", **where, why=f"segments could not be removed: {fault}")
            elif removal.done:
                for removed in self.on_removed:
                    removed(removal, records, size, why)
                if partition is not self._store.internal:  # nobody loses by the journal's, and it is often
                    self._events.tell(
                        "log.trimmed",
                        **where,
                        first_lsn=partition.first_lsn,
                        segments=len(removal.paths),
                        why=why,
                    )

        self._writer.submit(removal.run, done, partition.index)

    def _roll_old(self, partition: Partition) -> None:
        if self._clock.monotonic >= self._next_rolls.get(partition.index, 0.0):
            self._next_rolls[partition.index] = self._clock.monotonic + ROLL_SECONDS
            self.roll(partition.index)

    def _trim(self, partition: Partition, now_us: int | None) -> None:
        bounds = self._bounds
        removal = partition.take_retention(
            now_us, bounds.retained(partition.index),
            bounds.sessions(partition.index) if self._sessions_bytes_max else None, self._sessions_bytes_max,
            *bounds.exporter_within(partition),
        )  # fmt: skip
        if removal is not None:
            self.carry_out(partition, removal, "retention")
