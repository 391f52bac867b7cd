"""Every partition of a data directory, for a process without its lock; a broker may run.

The pid in LOCK tells whether one does. docs/reference/log-format.md, "Reading"."""

from __future__ import annotations

import os

from commitlog.disk.files import Files, whole_file
from commitlog.read.partition_view import PartitionView

NODE = "_cluster"  # of a data directory whose partitions are copies; as of `commitlog.replica.replica_state`


class LogReader:
    """Every partition of a data directory."""

    def __init__(self, files: Files, root: str, *, only_committed: bool = False) -> None:
        """only_committed: of a node of a cluster, leave out what its copies cannot prove to be committed

        raises: FileNotFoundError when it is no data directory"""
        self._files, self.root = files, root
        self._only_marked = only_committed and files.exists(f"{root}/{NODE}")
        if not files.exists(f"{root}/FORMAT"):
            raise FileNotFoundError(f"{root}: no data directory of rumq (it has no FORMAT)")

    def names(self, *, internal: bool = False) -> list[str]:
        """Of each partition, main/g1/p0. internal: of the broker's own records as well (`_state`)."""
        found = []
        for stream in self._files.names(self.root):
            if not self._is_stream(stream) or (stream.startswith("_") and not internal):
                continue
            for generation in numbered(self._files.names(f"{self.root}/{stream}"), "g"):
                above = f"{stream}/g{generation}"
                found += [f"{above}/p{n}" for n in numbered(self._files.names(f"{self.root}/{above}"), "p")]
        return found

    def partitions(self, *, internal: bool = False) -> list[PartitionView]:
        """A new view of each partition."""
        views = [self.maybe_partition(name) for name in self.names(internal=internal)]
        return [view for view in views if view is not None]

    def maybe_partition(self, name: str, earlier: PartitionView | None = None) -> PartitionView | None:
        """A new view of a partition by its name; None if it does not exist. earlier: see `PartitionView`"""
        stream, generation, number = name.split("/")
        directory = f"{self.root}/{name}"
        if not self._files.exists(directory):
            return None
        held = held_by_a_live_process(self._files, self.root)
        while True:
            view = PartitionView(
                self._files, directory, stream, int(generation[1:]), int(number[1:]), held, earlier,
                only_marked=self._only_marked,
            )  # fmt: skip
            if held or not (held := held_by_a_live_process(self._files, self.root)):
                return view
            # A broker has started since: it may be writing to the last segment.

    def _is_stream(self, name: str) -> bool:
        return name not in ("LOCK", "FORMAT") and self._files.exists(f"{self.root}/{name}/g1")


def numbered(names: list[str], letter: str) -> list[int]:
    """The numbers of the names that are a letter and a number, in order."""
    return sorted(int(name[1:]) for name in names if name[:1] == letter and name[1:].isdigit())


def held_by_a_live_process(files: Files, root: str) -> bool:
    """Whether the process named in LOCK runs on this machine; assumed where LOCK is unreadable."""
    path = f"{root}/LOCK"
    if not files.exists(path):
        return False
    words = whole_file(files, path).split()
    if len(words) < 2 or words[0] != b"pid" or not words[1].isdigit():
        return True
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
