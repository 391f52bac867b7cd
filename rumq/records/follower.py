"""`rumq.follow`: records as they arrive, from any position on, as Arrow batches. docs/guides/read.md, "Follow".

A reader of the log, not a client of the broker: it looks for new records, and holds nothing in the broker. `wait` and
`now` are arguments."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import pyarrow as pa

from rumq.flight.schema import NAMES, makers_of, schema_of
from rumq.flight.tickets import PARTITION
from rumq.records.log_partitions import readable_partitions
from rumq.records.log_source import Bound, SourceOptions, by_argument, columns_of, options_of
from rumq.records.range_batches import range_batches
from rumq.table.errors import BadOption, DataLoss
from rumq.table.options import Bound as Position
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import ReadablePartition, lakes_by_partition
from rumq.table.plan import LsnSpan, starting

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = (
    0.05,
    0.5,
)  # between two looks for new records, doubled while there are none
TURN_RECORDS_MAX = 250_000  # of a partition, before the next one has its turn


class Follower:
    """An iterator of batches that waits for new records. One partition's records come in order, each once.

    offsets: partition -> lsn behind the last batch: `start` of a later follower, which goes on there
    """

    def __init__(
        self, options: TableOptions, columns: tuple[str, ...], *, idle_seconds_max: float | None = None,
        wait: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """raises: as `rumq.read`, of its start"""
        self._options = options
        self._idle_seconds_max, self._wait, self._now = idle_seconds_max, wait, now
        self.schema: pa.Schema = schema_of(columns, "array")
        # Its lsn tells where a batch ends.
        self._read_columns = columns if "lsn" in columns else (*columns, "lsn")
        self.offsets = begin(options)
        self._batches = self._forever()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        """End a read in progress; nothing else is held."""
        self._batches.close()

    def _forever(self) -> Generator[pa.RecordBatch, None, None]:
        pause, quiet_since = PAUSE_SECONDS_MIN, self._now()
        while True:
            is_behind = False
            for span in self._turn():
                pause, is_behind = PAUSE_SECONDS_MIN, True
                for batch in self._read(span):
                    yield batch
                    quiet_since = self._now()
            if is_behind:
                continue
            if self._idle_seconds_max is not None:
                left = quiet_since + self._idle_seconds_max - self._now()
                if left <= 0:
                    return
                pause = min(pause, left)
            self._wait(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _turn(self) -> list[LsnSpan]:
        """What is new, at most so many records of each partition. raises: DataLoss if the log has become shorter"""
        found = []
        for partition in readable_partitions(self._options):
            name, head = partition.name, partition.end_lsn
            at = self.offsets.setdefault(name, partition.first_lsn)  # a new one: from its first record
            if head < at:
                self._check_end(partition, at)
            elif at < head:
                found.append(LsnSpan(name, at, min(head, at + TURN_RECORDS_MAX)))
        return found

    def _check_end(self, partition: ReadablePartition, at: int) -> None:
        """raises: DataLoss. One of several copies may not know yet what another one has told."""
        location = self._options.flight_location
        if self._options.fail_on_data_loss and not (location is not None and location.copies):
            why = f"the log ends at {partition.end_lsn}: its end was lost, or it is another log"
            raise DataLoss(partition.name, partition.end_lsn, at, why)

    def _read(self, span: LsnSpan) -> Iterator[pa.RecordBatch]:
        lakes = lakes_by_partition(self._options) if self._options.flight_location is None else {}
        schema = schema_of(self._read_columns, "array")
        makers = makers_of(self._read_columns, "array")
        lake = lakes.get(span.partition, "")
        for batch in range_batches(self._options, span, lake, makers, schema):
            self.offsets[span.partition] = batch.column("lsn")[-1].as_py() + 1
            yield batch.select(self.schema.names)
        self.offsets[span.partition] = span.end


def follow(
    source: str | os.PathLike[str], topics: str | Sequence[str] | None = None, start: Bound = "latest",
    columns: Sequence[str] | None = None, *, idle_seconds_max: float | None = None, **more: Unpack[SourceOptions],
) -> Follower:  # fmt: skip
    """Records as they arrive, from `start` on.

    start: as of `rumq.read`, or `offsets` of an earlier follower: partitions that it does not name are new, and are
      read from their first record
    idle_seconds_max: end after so long without a batch; None: never
    raises: as `rumq.read`, but a topic need not exist yet; while it is read DataLoss, and Away if a server stays away
    """
    names = columns_of(columns, NAMES)
    options = options_of(source, topics, start, None, dict(more), now_us=time.time_ns() // 1000)
    try:
        return Follower(options, names, idle_seconds_max=idle_seconds_max)
    except BadOption as fault:
        raise by_argument(fault) from None


def begin(options: TableOptions) -> dict[str, int]:
    """Partition -> the first lsn to read. raises: BadOption, DataLoss"""
    found, said = readable_partitions(options), options.start.lsns
    if said is None:
        return starting(options, found)
    check_partition_names(said)
    named = [each for each in found if each.name in said]
    lsns = {each.name: said[each.name] for each in named}
    at = starting(replace(options, start=Position("earliest", lsns=lsns)), named)
    new = {each.name: each.first_lsn for each in found if each.name not in said}
    gone = {name: lsn for name, lsn in said.items() if name not in at}
    return {**gone, **new, **at}


def check_partition_names(said: Mapping[str, int]) -> None:
    """raises: BadOption for what cannot be a partition; one that is gone is no fault of the caller"""
    for name in said:
        if PARTITION.fullmatch(name) is None:
            raise BadOption("startingOffsets", name, "names of partitions, such as main/g1/p0")
