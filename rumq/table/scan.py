"""A range of one partition's records as Arrow batches, from the log and, at its gaps, from the lake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from commitlog import Chunk, Gap
from commitlog.read.partition_view import PartitionView
from rumq.lake.lake_reader import cut as bounds
from rumq.mqtt.topics import matches
from rumq.table.arrow.columns import Block, Columns, RangeTopics
from rumq.table.errors import DataLoss
from rumq.table.lake_fallback import BATCH_BYTES_MAX, BATCH_ROWS_MAX, LakeFallback

NEEDS_PUBLISHERS = {"client_id", "key"}
Times = tuple[int, int]


class Selection(NamedTuple):
    """Which records of a range are wanted, and what of them.

    columns: name in the schema -> name in `columns.MAKERS`; wants: a test of topics, None: all
    times: first and end (exclusive), µs since 1970, None: all"""

    columns: dict[str, str]
    schema: pa.Schema
    wants: Callable[[str], bool] | None = None
    times: Times | None = None


def topic_matcher(filters: Sequence[str], pattern: str | None) -> Callable[[str], bool] | None:
    """A test of topics; None: all are wanted. Topics that begin with `$` only if a filter names them."""
    if pattern is not None:
        expression = re.compile(pattern)
        return lambda topic: expression.fullmatch(topic) is not None
    if not filters:
        return None
    return lambda topic: any(matches(f, topic) for f in filters)


def scan(
    view: PartitionView | None,
    start: int,
    end: int,
    wanted: Selection,
    *,
    fail_on_data_loss: bool = True,
    fallback: LakeFallback | None = None,
) -> Iterator[pa.RecordBatch]:
    """Wanted records of start..end, in order.

    view: None if only the lake has the partition; fallback: for records that the log lacks
    raises: DataLoss for unreadable records, including those that retention removed since the plan; OSError; LakeError
    cost: memory for a few batches, whatever the range; for the lake, of one of its files
    """
    found = scan_with_positions(view, start, end, wanted, fail_on_data_loss=fail_on_data_loss, fallback=fallback)
    return (batch for batch, _ in found)


def scan_with_positions(
    view: PartitionView | None,
    start: int,
    end: int,
    wanted: Selection,
    *,
    fail_on_data_loss: bool = True,
    fallback: LakeFallback | None = None,
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """As `scan`, each batch with the lsn to resume from."""
    if view is None:
        yield from read_fallback(
            "", Gap(start, end, "the log does not have the partition"), fallback, fail_on_data_loss
        )
        return
    columns, schema, wants, times = wanted
    topics = RangeTopics(wants)
    publishers = view.publishers(start, end) if NEEDS_PUBLISHERS & set(columns.values()) else {}
    id_bytes = lengths(publishers)
    ready: list[pa.RecordBatch] = []
    rows = size = next_lsn = 0
    for block in blocks(view, start, end, wants):
        if isinstance(block, Gap):
            if ready:
                yield concatenated(ready), next_lsn
                ready, rows, size = [], 0, 0
            # The lake has no records beyond the end of the log.
            elsewhere = fallback if block.base_lsn < view.end_lsn else None
            yield from read_fallback(view.name, block, elsewhere, fail_on_data_loss)
            continue
        for part, more in cut(topics.learn(block if times is None else within(block, times)), id_bytes):
            count = len(part.rows)
            if ready and (rows + count > BATCH_ROWS_MAX or size + more > BATCH_BYTES_MAX):
                yield concatenated(ready), next_lsn
                ready, rows, size = [], 0, 0
            made = Columns(part, view.name, topics, publishers)
            arrays = [made.array(columns[name]).cast(schema.field(name).type) for name in schema.names]
            ready.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += count
            size += more
            next_lsn = int(part.lsns[-1]) + 1
            if rows >= BATCH_ROWS_MAX // 2 or size >= BATCH_BYTES_MAX // 2:
                yield concatenated(ready), next_lsn
                ready, rows, size = [], 0, 0
    if ready:
        yield concatenated(ready), next_lsn


def read_fallback(
    name: str, gap: Gap, fallback: LakeFallback | None, fail_on_data_loss: bool
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The records of a gap, from the lake. raises: DataLoss for those that it lacks"""
    for part in fallback.read(gap) if fallback is not None else [gap]:
        if not isinstance(part, Gap):
            yield part
        elif fail_on_data_loss:
            name = name or (fallback.partition if fallback is not None else "")
            raise DataLoss(name, part.base_lsn, part.next_lsn, part.why)


def within(block: Block, times: Times) -> Block:
    """The records of these times."""
    first, end = times
    kept = (block.ts >= first) & (block.ts < end)
    return block if kept.all() else block.kept(np.flatnonzero(kept))


def blocks(view: PartitionView, start: int, end: int, wants: Callable[[str], bool] | None) -> Iterator[Block | Gap]:
    """Chunks, many small ones combined, and gaps."""
    waiting: list[Chunk] = []
    rows = size = 0
    for found in chunks_of_range(view, start, end, wants):
        if isinstance(found, Gap):
            if waiting:
                yield Block(waiting)
                waiting, rows, size = [], 0, 0
            yield found
            continue
        if waiting and (rows + found.count > BATCH_ROWS_MAX or size + len(found.frames) > BATCH_BYTES_MAX):
            yield Block(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(found)
        rows += found.count
        size += len(found.frames)
    if waiting:
        yield Block(waiting)


def chunks_of_range(
    view: PartitionView, start: int, end: int, wants: Callable[[str], bool] | None
) -> Iterator[Chunk | Gap]:
    """Chunks that include all wanted records of start..end, and gaps with their reasons.

    wants: chunks without such topics, according to an index, are not read"""
    if start < view.first_lsn:
        yield Gap(start, min(end, view.first_lsn), "retention has removed them")
    if wants is None:
        yield from view.chunks(start, end)
    else:
        first, last = max(start, view.first_lsn), min(end, view.end_lsn)
        for part in view.spans_of(first, last, lambda topic: wants(topic.decode())):
            yield from view.chunks(*part)
    if end > view.end_lsn:
        why = f"the log ends at {view.end_lsn}: its end was lost, or it is another log"
        yield Gap(max(start, view.end_lsn), end, why)


def lengths(publishers: Mapping[int, bytes]) -> npt.NDArray[np.int64]:
    """Bytes of each client id by its number, and a last 0 for missing numbers."""
    found = np.zeros(max(publishers, default=-1) + 2, np.int64)
    found[list(publishers)] = [len(name) for name in publishers.values()]
    return found


def cut(block: Block, id_bytes: npt.NDArray[np.int64]) -> Iterator[tuple[Block, int]]:
    """Parts up to the size of a batch, with their bytes; a larger record is a part of its own.

    id_bytes: see `lengths`; rows include the client id, records do not"""
    if not len(block.rows):
        return
    numbers = np.minimum(block.rows["pub_no"], len(id_bytes) - 1)
    sizes = np.cumsum(block.ends - block.starts + id_bytes[numbers])
    done = 0
    for first, stop in bounds(sizes, BATCH_ROWS_MAX, BATCH_BYTES_MAX):
        size = int(sizes[stop - 1]) - done
        yield block if (first, stop) == (0, len(sizes)) else block.kept(slice(first, stop)), size
        done += size


def concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
