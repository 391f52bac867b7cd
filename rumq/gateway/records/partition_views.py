"""The partitions of a data directory as views, made anew only where their files have changed. For any thread.

Who follows the log costs a look at a few files, however many follow."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from commitlog import RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView

KEPT_SECONDS = 1.0  # a view is made anew after so long, whatever the times of its files say
SEGMENTS_LOOKED_AT = 2  # the newest of a partition: others are not written any more
Stamp = tuple[tuple[int, int], ...]


class CachedView(NamedTuple):
    """stamp: of the files before the view was made; newest: paths that it is taken from"""

    view: PartitionView
    stamp: Stamp
    made_at: float
    newest: list[str]


class PartitionViews:
    """path: of the data directory; now: monotonic seconds"""

    def __init__(self, path: str, now: Callable[[], float] = time.monotonic) -> None:
        self._path, self._now = path, now
        self._kept: dict[str, CachedView] = {}
        self._looking = threading.Lock()

    def current(self) -> list[PartitionView]:
        """A view of each partition as its files are now; of a node of a cluster, of what is committed. raises: OSError

        cost: the names of the partitions, and the state of four files each; more only where something has changed"""
        with self._looking:
            reader = LogReader(RealFiles(), self._path, only_committed=True)
            found = []
            for name in reader.names():
                view = self._maybe_view(reader, name)
                if view is not None:
                    found.append(view)
            return found

    def ends(self) -> dict[str, int]:
        """Of each partition the end of what may be read. raises: OSError"""
        return {view.name: view.end_lsn for view in self.current()}

    def _maybe_view(self, reader: LogReader, name: str) -> PartitionView | None:
        kept, now = self._kept.get(name), self._now()
        directory = f"{self._path}/{name}"
        is_recent = kept is not None and now - kept.made_at < KEPT_SECONDS
        if kept is not None and is_recent and stamp_of(directory, kept.newest) == kept.stamp:
            return kept.view
        newest = newest_of(directory)
        stamp = stamp_of(directory, newest)  # before the view: what is written meanwhile changes it
        view = reader.maybe_partition(name, None if kept is None else kept.view)
        if view is not None:
            self._kept[name] = CachedView(view, stamp, now, newest)
        return view


def newest_of(directory: str) -> list[str]:
    """Files whose state tells that the partition has changed: its newest segments, and its manifest."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    segments = sorted(name for name in names if name.endswith(".seg"))[-SEGMENTS_LOOKED_AT:]
    others = sorted(name for name in names if name.startswith("MANIFEST"))
    return [f"{directory}/{name}" for name in (*segments, *others)]


def stamp_of(directory: str, newest: list[str]) -> Stamp:
    """The directory changes with every file that comes or goes, a file with every write."""
    return tuple(state_of(path) for path in (directory, *newest))


def state_of(path: str) -> tuple[int, int]:
    try:
        state = os.stat(path)
    except OSError:
        return -1, -1
    return state.st_mtime_ns, state.st_size
