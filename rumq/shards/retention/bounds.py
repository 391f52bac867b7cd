"""What retention must keep: records that the journal, persistent sessions of any shard, or the exporter still need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from commitlog import Partition
from commitlog.write.retention import SegmentRemoval
from rumq.loop.ports import ReadPool
from rumq.shards.retention.export_positions import ExportPositions


class JournalNeeds(Protocol):
    """`rumq.shards.recovery.journal_writer`"""

    def keep_lsn(self, index: int) -> int | None: ...
    def wanted_lsn(self, index: int) -> int | None: ...
    def take_removal(self) -> SegmentRemoval | None: ...


class SessionNeeds(Protocol):
    """Of all shards: `rumq.shards.peers.peers`."""

    def wanted_lsn(self, index: int, here: int | None) -> int | None: ...
    def tell_needs(self, wanted_lsn: Callable[[int], int | None]) -> None: ...


class RetentionBounds:
    """Of each partition the first lsn that something needs; None: nothing needs any."""

    def __init__(
        self, journal: JournalNeeds, needs: SessionNeeds, exports: ExportPositions | None, reader: ReadPool
    ) -> None:
        self._journal, self._needs, self._exports, self._reader = journal, needs, exports, reader

    def retained(self, index: int) -> int | None:
        """For the retained messages, which are found in the log at a start."""
        return self._journal.keep_lsn(index)

    def sessions(self, index: int) -> int | None:
        """For persistent sessions, here and in other shards."""
        return self._needs.wanted_lsn(index, self._journal.wanted_lsn(index))

    def exporter(self, partition: Partition) -> int | None:
        return self._exports.unexported_lsn(partition, self._reader) if self._exports is not None else None

    def exporter_within(self, partition: Partition) -> tuple[int | None, int]:
        """As `exporter`, if retention waits for it, and for how many bytes beyond what it keeps anyway."""
        if self._exports is None:
            return None, 0
        return self._exports.wanted_lsn(partition, self._reader), self._exports.bytes_max

    def tell_needs(self) -> None:
        """Tell other shards what sessions here need of their partitions."""
        self._needs.tell_needs(self._journal.wanted_lsn)

    def journal_removal(self) -> SegmentRemoval | None:
        """The removal of journal segments before the last snapshot."""
        return self._journal.take_removal()
