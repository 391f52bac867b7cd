"""Which records a query reads: partitions, where each begins and ends, and ranges for tasks. Knows no Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, Protocol

from commitlog import RealFiles, StoreError
from commitlog.reader import LogReader, PartitionView
from rumq.spark.errors import BadOption, DataLoss
from rumq.spark.options import Bound, Options

TASK_ROWS_MIN = 250_000  # below this a task's start costs more than another core saves


class Span(NamedTuple):
    """Records start..end of a partition."""

    partition: str
    start: int
    end: int


class View(Protocol):
    """A partition as it was when it was looked at: of files, `PartitionView`, or of a broker, `RemoteView`."""

    @property
    def name(self) -> str: ...
    @property
    def first_lsn(self) -> int: ...
    @property
    def end_lsn(self) -> int: ...
    def find_time(self, ts_us: int) -> int: ...
    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int: ...


def reader(path: str) -> LogReader:
    """raises: BadOption where there is no log"""
    try:
        return LogReader(RealFiles(), path)
    except (OSError, StoreError) as fault:
        raise BadOption("path", path, f"a data directory of rumq ({fault})") from None


_views: dict[tuple[str, str], PartitionView] = {}
_looking = threading.Lock()  # views of a partition share what they know of its files


def maybe_view(path: str, name: str) -> PartitionView | None:
    """A partition as it is now. A process that lives long, on the driver or of a worker, looks at what is new only."""
    with _looking:
        view = reader(path).maybe_partition(name, _views.get((path, name)))
        if view is None:
            _views.pop((path, name), None)
        else:
            _views[path, name] = view
        return view


def views(options: Options) -> list[View]:
    """The partitions to read, as they are now."""
    if options.where is not None:
        from rumq.spark.remote import remote_views

        there = remote_views(options.where)
        return [there[name] for name in chosen(options, {name: name.partition("/")[0] for name in there})]
    found = chosen(options, {name: name.partition("/")[0] for name in reader(options.path).names()})
    return [view for name in found if (view := maybe_view(options.path, name)) is not None]


def chosen(options: Options, there: dict[str, str]) -> list[str]:
    """Names of partitions. there: name -> its stream"""
    streams = sorted(set(there.values()))
    if options.stream is not None and options.stream not in streams:
        allowed = f"one of the streams: {', '.join(streams) or 'none is there yet'}"
        raise BadOption("stream", options.stream, allowed)
    if missing := [name for name in options.assigned if name not in there]:
        raise BadOption("assign", ", ".join(missing), f"partitions that are there: {', '.join(there)}")
    return [
        name
        for name, stream in there.items()
        if options.stream in (None, stream) and (not options.assigned or name in options.assigned)
    ]


def spans(options: Options) -> list[Span]:
    """What a batch query reads. raises: BadOption, DataLoss"""
    found = views(options)
    starts, ends = starting(options, found), ending(options, found)
    for view in found:
        if starts[view.name] > ends[view.name] and (options.start.lsns or options.start.times_us):
            allowed = f"no more than where it ends, {ends[view.name]}"
            raise BadOption("startingOffsets", f"{view.name}: {starts[view.name]}", allowed)
    return [Span(v.name, starts[v.name], ends[v.name]) for v in found if starts[v.name] < ends[v.name]]


def starting(options: Options, found: list[View]) -> dict[str, int]:
    """Partition name -> first lsn. raises: BadOption, DataLoss for one that retention took"""
    bound = options.start
    named("startingOffsets", bound, found)
    lsns = {}
    for view in found:
        lsn = view.first_lsn
        if bound.time_us is not None:
            lsn = at_time(options, view, bound.time_us)
        elif bound.times_us is not None:
            lsn = at_time(options, view, bound.times_us[view.name])
        elif bound.lsns is not None:
            lsn = given(view, bound.lsns[view.name])
            if lsn > view.end_lsn:
                allowed = f"no more than where the log ends, {view.end_lsn}"
                raise BadOption("startingOffsets", f"{view.name}: {lsn}", allowed)
            if lsn < view.first_lsn and options.fail_on_data_loss:
                raise DataLoss(view.name, lsn, view.first_lsn, "retention has taken them")
        elif bound.tail is not None:
            lsn = view.end_lsn - bound.tail
        elif bound.word == "latest":
            lsn = view.end_lsn
        lsns[view.name] = max(lsn, view.first_lsn)
    return lsns


def ending(options: Options, found: list[View]) -> dict[str, int]:
    """Partition name -> end, exclusive."""
    bound = options.end
    named("endingOffsets", bound, found)
    lsns = {}
    for view in found:
        lsn = view.end_lsn
        if bound.time_us is not None:
            lsn = view.find_time(bound.time_us)
        elif bound.times_us is not None:
            lsn = view.find_time(bound.times_us[view.name])
        elif bound.lsns is not None:
            lsn = given(view, bound.lsns[view.name])
            if lsn > view.end_lsn:
                allowed = f"no more than where the log ends, {view.end_lsn}"
                raise BadOption("endingOffsets", f"{view.name}: {lsn}", allowed)
        lsns[view.name] = lsn
    return lsns


def given(view: View, lsn: int) -> int:
    return {-2: view.first_lsn, -1: view.end_lsn}.get(lsn, lsn)


def named(option: str, bound: Bound, found: list[View]) -> None:
    """Offsets name exactly the partitions that are read: what is left out would be read from who knows where."""
    said = bound.lsns if bound.lsns is not None else bound.times_us
    if said is None:
        return
    names = {view.name for view in found}
    if set(said) != names:
        wrong = ", ".join(sorted(set(said) ^ names))
        allowed = f"exactly the partitions that are read ({', '.join(sorted(names))}); assign chooses some"
        raise BadOption(option, wrong, allowed)


def at_time(options: Options, view: View, time_us: int) -> int:
    """The first record at or after a time."""
    lsn = view.find_time(time_us)
    if lsn < view.end_lsn or options.when_none == "latest":
        return lsn
    if options.when_none == "error":
        raise BadOption(
            "startingTimestamp", f"{view.name}: {time_us // 1000}", "a time that has a record at or after it"
        )
    return view.first_lsn


def cut(found: Iterable[Span], partitions_min: int, records_max: int, cores: int) -> list[Span]:
    """Ranges for tasks: of equal size within a span, in order.

    partitions_min: 0 for as many as there are cores, of TASK_ROWS_MIN at least
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
        tasks += [Span(span.partition, a, b) for a, b in pairwise(marks) if a < b]
    return tasks
