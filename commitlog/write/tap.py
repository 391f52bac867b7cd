"""A tap: told of every byte that a segment writer writes, in order, so that copies can be made elsewhere."""

from __future__ import annotations

from typing import Protocol

from commitlog.chunk import Buffer


class WriterTap(Protocol):
    """Called on the thread that writes, while it writes: must not block, and must not raise.

    What was told is not synced yet, and of a small group not written: `Partition.complete` says when it is."""

    def opened(self, name: str, base_lsn: int, header: bytes) -> None:
        """A segment now exists, with its header."""

    def written(self, name: str, position: int, data: Buffer) -> None:
        """Whole chunks of a segment, at a byte of it. data: valid during the call"""

    def trimmed(self, first_lsn: int) -> None:
        """Retention removes everything below."""

    def irregular(self) -> None:
        """Something that was told counts no more: a copy must be compared with the log anew."""
