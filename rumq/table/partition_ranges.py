"""A partition as one range of records, in its log and in its lake. docs/guides/spark.md, "History".

`rumq.table.scan` decides for each record, when it is read, between log and lake."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple, Protocol

from commitlog import RealFiles, StoreError
from commitlog.disk.export_marker import exported_to
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.errors import RumqError
from rumq.lake.lake_reader import Lake, files_within, find_time, lake_at
from rumq.lake.manifest import LakePartition
from rumq.table.errors import BadOption
from rumq.table.options import TableOptions

NO_LAKE = "none"


class ReadablePartition(Protocol):
    """A snapshot of a partition: of files and a lake, `PartitionRange`, or of a Flight server, `RemotePartition`."""

    @property
    def name(self) -> str: ...
    @property
    def first_lsn(self) -> int: ...
    @property
    def end_lsn(self) -> int: ...
    def find_time(self, ts_us: int, *, behind_lost: bool = False) -> int: ...
    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int: ...
    def segment_of(self, lsn: int) -> str: ...


def log_reader(path: str) -> LogReader:
    """raises: BadOption if there is no log"""
    try:
        return LogReader(RealFiles(), path, only_committed=True)
    except (OSError, StoreError) as fault:
        raise BadOption("path", path, f"a data directory of rumq ({fault})") from None


_views: dict[tuple[str, str], PartitionView] = {}
_looking = threading.Lock()  # views of a partition share their knowledge of its files


def maybe_view(path: str, name: str) -> PartitionView | None:
    """The current state of a partition. Long-lived processes, on the driver and on workers, scan new data only."""
    with _looking:
        view = log_reader(path).maybe_partition(name, _views.get((path, name)))
        if view is None:
            _views.pop((path, name), None)
        else:
            _views[path, name] = view
        return view


class PartitionRange:
    """Records first_lsn..end_lsn of one partition. location: of its lake, "" if it has none; see `PartitionView`"""

    def __init__(self, name: str, view: PartitionView | None, location: str = "", lake: Lake | None = None) -> None:
        self.view, self.location, self.lake = view, location, lake
        self._name = name
        self.exported = lake.manifest.partition(name) if lake is not None else LakePartition(name)
        self.log_first_lsn = view.first_lsn if view is not None else self.exported.next_lsn
        self._end_lsn = view.end_lsn if view is not None else self.exported.next_lsn
        has = self.exported.next_lsn > self.exported.first_lsn
        self._first_lsn = min(self.exported.first_lsn, self.log_first_lsn) if has else self.log_first_lsn

    @property
    def name(self) -> str:
        return self._name

    @property
    def first_lsn(self) -> int:
        return self._first_lsn

    @property
    def end_lsn(self) -> int:
        return self._end_lsn

    @property
    def last_ts(self) -> int:
        """Time of its newest record, µs since 1970; 0 if it has none, or if unknown."""
        found = self.view.last_ts if self.view is not None else 0
        return found or max((file.last_ts for file in self.exported.files.values()), default=0)

    def check(self) -> None:
        """raises: BadOption if log and lake cannot be of one broker"""
        view, next_lsn = self.view, self.exported.next_lsn
        if view is None or next_lsn <= 0:
            return
        name = view.segment_of(next_lsn - 1)
        if next_lsn > view.end_lsn or (name and name != self.exported.segment):
            raise BadOption(
                "lake",
                self.location,
                f"the lake of this log: its records of {self.name} are another's (option lake = {NO_LAKE} reads "
                "the log alone)",
            )

    def find_time(self, ts_us: int, *, behind_lost: bool = False) -> int:
        """As `PartitionView.find_time`, of log and lake."""
        if self.lake is not None and self.first_lsn < self.log_first_lsn:
            lsn = find_time(self.lake, self.name, ts_us, self.log_first_lsn)
            if lsn is not None:
                return lsn
        return self.view.find_time(ts_us, behind_lost=behind_lost) if self.view is not None else self.end_lsn

    def segment_of(self, lsn: int) -> str:
        """The log's segment file that has a record; "" if none has it."""
        return self.view.segment_of(lsn) if self.view is not None else ""

    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int:
        """The end of about `bytes_max` bytes of the log from a record on; at least one record."""
        for file in files_within(self.exported, from_lsn, min(to_lsn, self.log_first_lsn)):
            at, stop = max(from_lsn, file.base_lsn), min(to_lsn, file.next_lsn)
            size = file.raw * (stop - at) // (file.next_lsn - file.base_lsn)
            if size > bytes_max:
                return max(at + (stop - at) * bytes_max // size, from_lsn + 1)
            bytes_max -= size
        at = max(from_lsn, self.log_first_lsn)
        if self.view is None or at >= to_lsn:
            return to_lsn
        return self.view.end_within(at, to_lsn, bytes_max)


class LakeLocations(NamedTuple):
    """Lakes and log of a data directory. of: partition -> its lake; lakes: read before the log"""

    of: dict[str, str]
    lakes: dict[str, Lake]

    def maybe(self, name: str) -> tuple[str, Lake | None]:
        location = self.of.get(name, "")
        return location, self.lakes.get(location)


def lake_locations(options: TableOptions, names: list[str]) -> LakeLocations:
    """Ranges of all partitions, including those that only a lake has. names: those of the log

    raises: BadOption if a lake cannot be read"""
    if options.lake == NO_LAKE:
        return LakeLocations({}, {})
    if options.lake:
        of = dict.fromkeys(names, options.lake)
    else:
        files = RealFiles()
        found = {name: exported_to(files, f"{options.path}/{name}") for name in names}
        of = {name: location for name, location in found.items() if location}
    lakes: dict[str, Lake] = {}
    for location in {options.lake} if options.lake else sorted(set(of.values())):
        try:
            lakes[location] = lake_at(location)
        except (RumqError, OSError, ImportError) as fault:
            allowed = f"a lake that can be read ({fault}); {NO_LAKE} reads the log alone"
            raise BadOption("lake", location, allowed) from None
        for name in lakes[location].manifest.partitions:
            of.setdefault(name, location)
    return LakeLocations(of, lakes)


def lakes_by_partition(options: TableOptions) -> dict[str, str]:
    """Partition -> location of its lake, if it has one."""
    return lake_locations(options, log_reader(options.path).names()).of


def partition_ranges(options: TableOptions, only: Collection[str] | None = None) -> list[PartitionRange]:
    """Ranges of a data directory. only: these partitions, if they exist, whatever the options. raises: BadOption"""
    names = log_reader(options.path).names()
    # Read the lakes first: then the log is at least as far as they are, or it is another log.
    where = lake_locations(options, names)
    found = []
    there = {name: name.partition("/")[0] for name in [*names, *sorted(where.of)]}
    for name in chosen(options, there) if only is None else [name for name in only if name in there]:
        view = maybe_view(options.path, name)
        partition = PartitionRange(name, view, *where.maybe(name))
        if view is not None or partition.exported.next_lsn >= 0:
            partition.check()
            found.append(partition)
    return found


def chosen(options: TableOptions, there: dict[str, str]) -> list[str]:
    """Names of partitions. there: name -> stream, of existing ones"""
    streams = sorted(set(there.values()))
    if options.stream is not None and options.stream not in streams:
        allowed = f"one of the streams: {', '.join(streams) or 'there is none yet'}"
        raise BadOption("stream", options.stream, allowed)
    if missing := [name for name in options.assigned if name not in there]:
        raise BadOption("assign", ", ".join(missing), f"partitions that are there: {', '.join(there)}")
    return [
        name
        for name, stream in there.items()
        if options.stream in (None, stream) and (not options.assigned or name in options.assigned)
    ]
