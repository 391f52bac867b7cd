"""Format "rumq" of Spark, streaming: a query's offsets are one lsn per partition, in its checkpoint.

docs/guides/spark.md.
The driver keeps one reader per query; workers use copies. Spark reports commits one batch late, and the end of a query
not always: nothing here depends on either."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from rumq.records.log_identity import check_same_log, segments_at
from rumq.records.log_partitions import readable_partitions
from rumq.spark.source.ranges import RangeReader, ranges
from rumq.table.errors import BadOption, DataLoss
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import ReadablePartition
from rumq.table.plan import LsnSpan, starting

OFFSETS_VERSION = 1  # of the form below, which is permanent in checkpoints
Lsns = dict[str, int]

Offsets = dict[str, Any]  # as JSON in the checkpoint: v, lsn (by partition), segments (by partition)


def as_offsets(lsns: Lsns, segments: Mapping[str, str] | None = None) -> Offsets:
    """segments: see rumq.records.log_identity; older versions do not write them, and ignore them"""
    offsets: Offsets = {"v": OFFSETS_VERSION, "lsn": dict(sorted(lsns.items()))}
    if segments:
        offsets["segments"] = dict(sorted(segments.items()))
    return offsets


def as_segments(offsets: Offsets) -> dict[str, str]:
    return {str(name): str(segment) for name, segment in offsets.get("segments", {}).items()}


def as_lsns(offsets: Offsets) -> Lsns:
    """raises: BadOption for a checkpoint of another version"""
    if offsets.get("v") != OFFSETS_VERSION:
        raise BadOption("checkpointLocation", str(offsets), f"offsets of version {OFFSETS_VERSION}")
    return {str(name): int(lsn) for name, lsn in offsets["lsn"].items()}


class RumqStreamReader(RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: TableOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._first: Lsns | None = None
        self._final_lsns: Lsns | None = None
        self._last_batch_at = time.monotonic()
        self._last_offsets: Offsets = {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.trigger_records_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._final_lsns = {view.name: view.end_lsn for view in readable_partitions(self._options)}

    def initialOffset(self) -> Offsets:
        """Start of a query without a checkpoint. Spark calls this twice: `latest` is the end at the first call."""
        if self._first is None:
            self._first = starting(self._options, readable_partitions(self._options))
        return as_offsets(self._first)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """End of the next batch, never before its start; removed partitions keep their offset."""
        starts, said = as_lsns(start), as_segments(start)
        found = readable_partitions(self._options)
        check_same_log(self._options, found, starts, said)
        heads = self._heads(starts, found)
        lags = {name: max(0, head - starts.get(name, 0)) for name, head in heads.items()}
        if self._waits_for_records(sum(lags.values())):
            return start
        self._last_batch_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            heads = proportional(starts, heads, lags, limit.max_rows)
        if self._options.trigger_bytes_max and not isinstance(limit, ReadAllAvailable):
            heads = within(starts, heads, found, self._options.trigger_bytes_max)
        moved = {name: lsn for name, lsn in heads.items() if lsn != starts.get(name)}
        if not moved:
            return start
        self._last_offsets = as_offsets(
            starts | heads,
            {name: segment for name, segment in said.items() if name not in moved}
            | segments_at(self._options, found, moved),
        )
        return self._last_offsets

    def _heads(self, starts: Lsns, found: list[ReadablePartition]) -> Lsns:
        heads = {}
        for view in found:
            head, begin = view.end_lsn, starts.get(view.name, 0)
            # One of several copies may not know yet what an other one has told: `check_same_log` tells another log.
            flight_location = self._options.flight_location
            is_one_of_many = flight_location is not None and bool(flight_location.copies)
            if head < begin and self._options.fail_on_data_loss and not is_one_of_many:
                why = f"the log ends at {head}: its end was lost, or it is another log (use a new checkpoint)"
                raise DataLoss(view.name, head, begin, why)
            if self._final_lsns is not None:
                head = min(head, self._final_lsns.get(view.name, begin))
            heads[view.name] = max(head, begin)
        return heads

    def _waits_for_records(self, lag: int) -> bool:
        """Whether there are too few records for a batch yet."""
        if self._final_lsns is not None or lag >= self._options.trigger_records_min:
            return False
        return time.monotonic() - self._last_batch_at < self._options.trigger_seconds_max

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Tasks of a batch: the same for the same two offsets. A new partition starts at its record 0."""
        starts, ends = as_lsns(start), as_lsns(end)
        if end != self._last_offsets:  # of a batch that an earlier run of the query began
            check_same_log(self._options, readable_partitions(self._options), ends, as_segments(end))
        return list(ranges([LsnSpan(name, starts.get(name, 0), lsn) for name, lsn in ends.items()], self._options))

    def reportLatestOffset(self) -> Offsets:
        """The end of the log, for progress reports."""
        return as_offsets({view.name: view.end_lsn for view in readable_partitions(self._options)})

    def commit(self, end: Offsets) -> None:
        """Does nothing: retention does not wait for queries."""

    def stop(self) -> None:
        """Does nothing: there is no resource to release."""


def proportional(starts: Lsns, heads: Lsns, lags: Lsns, records_max: int) -> Lsns:
    """At most so many records, in proportion to each partition's lag; at least one of each that has any."""
    total = sum(lags.values())
    if total <= records_max:
        return heads
    return {
        name: starts.get(name, 0) + (max(1, lag * records_max // total) if lag else 0) for name, lag in lags.items()
    }


def within(starts: Lsns, heads: Lsns, found: list[ReadablePartition], bytes_max: int) -> Lsns:
    """About so many bytes of the log, in equal shares; at least one chunk of each partition that has any."""
    lagging = [view for view in found if heads[view.name] > starts.get(view.name, 0)]
    share = bytes_max // max(1, len(lagging))
    for view in lagging:
        heads[view.name] = view.end_within(starts.get(view.name, 0), heads[view.name], share)
    return heads
