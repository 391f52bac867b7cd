"""The plan of a query: partitions, start and end of each, and ranges for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from rumq.table.errors import BadOption, DataLoss
from rumq.table.options import Bound, TableOptions
from rumq.table.partition_ranges import ReadablePartition
from rumq.table.pushed_filters import US_END, PushedFilters

NO_FILTERS = PushedFilters()
TASK_ROWS_MIN = 250_000  # for fewer rows a task's start costs more than another core saves


class LsnSpan(NamedTuple):
    """Records start..end of a partition."""

    partition: str
    start: int
    end: int


def spans(
    options: TableOptions, found: Sequence[ReadablePartition], pushed_filters: PushedFilters = NO_FILTERS
) -> list[LsnSpan]:
    """The spans of a batch query in these partitions. raises: BadOption, DataLoss"""
    starts, ends = starting(options, found), ending(options, found)
    for view in found:
        if starts[view.name] > ends[view.name] and (options.start.lsns or options.start.times_us):
            allowed = f"no more than where it ends, {ends[view.name]}"
            raise BadOption("startingOffsets", f"{view.name}: {starts[view.name]}", allowed)
    whole = [(v, LsnSpan(v.name, starts[v.name], ends[v.name])) for v in found if pushed_filters.reads(v.name)]
    narrow = [narrowed(view, span, pushed_filters) for view, span in whole if span.start < span.end]
    return [span for span in narrow if span.start < span.end]


def narrowed(view: ReadablePartition, span: LsnSpan, pushed_filters: PushedFilters) -> LsnSpan:
    """The part of it that the filters may want."""
    name, start, end = span
    start, end = max(start, pushed_filters.first_lsn), min(end, pushed_filters.end_lsn)
    if pushed_filters.times is not None and start < end:
        first, below = pushed_filters.times
        if first > -US_END:
            start = max(start, view.find_time(max(first, 0)))
        if below < US_END and start < end:
            end = min(end, view.find_time(max(below, 0), behind_lost=True))
    return LsnSpan(name, start, end)


def starting(options: TableOptions, found: Sequence[ReadablePartition]) -> dict[str, int]:
    """Partition name -> first lsn. raises: BadOption, DataLoss for one that retention removed"""
    bound = options.start
    check_named_partitions("startingOffsets", bound, found)
    lsns = {}
    for view in found:
        lsn = view.first_lsn
        if bound.time_us is not None:
            lsn = at_time(options, view, bound.time_us)
        elif bound.times_us is not None:
            lsn = at_time(options, view, bound.times_us[view.name])
        elif bound.lsns is not None:
            lsn = resolved(view, bound.lsns[view.name])
            if lsn > view.end_lsn:
                allowed = f"no more than where the log ends, {view.end_lsn}"
                raise BadOption("startingOffsets", f"{view.name}: {lsn}", allowed)
            if lsn < view.first_lsn and options.fail_on_data_loss:
                raise DataLoss(view.name, lsn, view.first_lsn, "retention has removed them")
        elif bound.tail is not None:
            lsn = view.end_lsn - bound.tail
        elif bound.word == "latest":
            lsn = view.end_lsn
        lsns[view.name] = max(lsn, view.first_lsn)
    return lsns


def ending(options: TableOptions, found: Sequence[ReadablePartition]) -> dict[str, int]:
    """Partition name -> end, exclusive."""
    bound = options.end
    check_named_partitions("endingOffsets", bound, found)
    lsns = {}
    for view in found:
        lsn = view.end_lsn
        if bound.time_us is not None:
            lsn = view.find_time(bound.time_us)
        elif bound.times_us is not None:
            lsn = view.find_time(bound.times_us[view.name])
        elif bound.lsns is not None:
            lsn = resolved(view, bound.lsns[view.name])
            if lsn > view.end_lsn:
                allowed = f"no more than where the log ends, {view.end_lsn}"
                raise BadOption("endingOffsets", f"{view.name}: {lsn}", allowed)
        lsns[view.name] = lsn
    return lsns


def resolved(view: ReadablePartition, lsn: int) -> int:
    return {-2: view.first_lsn, -1: view.end_lsn}.get(lsn, lsn)


def check_named_partitions(option: str, bound: Bound, found: Sequence[ReadablePartition]) -> None:
    """Offsets must name exactly the partitions that are read: a missing one would have no start."""
    said = bound.lsns if bound.lsns is not None else bound.times_us
    if said is None:
        return
    names = {view.name for view in found}
    if set(said) != names:
        wrong = ", ".join(sorted(set(said) ^ names))
        allowed = f"exactly the partitions that are read ({', '.join(sorted(names))}); assign chooses some"
        raise BadOption(option, wrong, allowed)


def at_time(options: TableOptions, view: ReadablePartition, time_us: int) -> int:
    """The first record at or after a time."""
    lsn = view.find_time(time_us)
    if lsn < view.end_lsn or options.when_none == "latest":
        return lsn
    if options.when_none == "error":
        raise BadOption(
            "startingTimestamp", f"{view.name}: {time_us // 1000}", "a time that has a record at or after it"
        )
    return view.first_lsn


def cut(found: Iterable[LsnSpan], partitions_min: int, records_max: int, cores: int) -> list[LsnSpan]:
    """Ranges for tasks: of equal size within a span, in order.

    partitions_min: 0 for one per core, each of at least TASK_ROWS_MIN
    """
    found = list(found)
    total = sum(span.end - span.start for span in found)
    if partitions_min:
        most = max(total // partitions_min, 1)
    else:
        most = max(-(-total // cores), TASK_ROWS_MIN)
    most = min(most, records_max)
    tasks = []
    for span in found:
        count = span.end - span.start
        parts = -(-count // most)
        marks = [span.start + count * n // parts for n in range(parts + 1)] if parts else []
        tasks += [LsnSpan(span.partition, a, b) for a, b in pairwise(marks) if a < b]
    return tasks
