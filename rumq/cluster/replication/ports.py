"""The disk of a replica, as the sans-IO parts of replication see it."""

from __future__ import annotations

from typing import Protocol

from rumq.cluster.replication import messages as m

DataFrame = m.Cut | m.Open | m.Write | m.Names | m.Trim


class LogCopies(Protocol):
    """The partitions of one shard as they are on this disk, by key."""

    def ends(self) -> dict[str, int]:
        """The lsn behind the last whole record of each; all of it is synced when this returns."""

    def inventory(self, partition: str) -> list[m.SegmentInfo]: ...

    def apply(self, frame: DataFrame, raw: memoryview) -> None:
        """Cut, begin a segment, write chunks or trim. raises: OSError, LogError: the copy is not usable any more

        After a cut, `sync` tells of the partition even if nothing has changed."""

    def sync(self) -> list[tuple[str, int, str, int]]:
        """Sync what was applied since; (partition, next lsn, name, stop) of each partition that was touched."""

    def note_committed(self, partition: str, lsn: int) -> None:
        """Nothing below is ever cut."""


class ReplicaState(Protocol):
    """promised: the highest epoch; opened: epoch of the last leader whose log was completely here"""

    promised: int
    opened: int

    def promise(self, epoch: int) -> None:
        """Durable when it returns. raises: OSError"""

    def open(self, epoch: int) -> None:
        """Durable when it returns. raises: OSError"""

    def note_restored(self, restored: int) -> bool:
        """As of `View.restored`: doubt the log, once. returns: whether that is news; durable then. raises: OSError"""
