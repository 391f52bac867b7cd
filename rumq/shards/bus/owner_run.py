"""Which run of a partition's owner positions are of: an lsn names a record of one run, and perhaps another one of the
next.

No messages here, and no journal."""

from __future__ import annotations

from collections.abc import Sequence

from router.readers.shared_group import LSN_MAX


class OwnerRun:
    """The run of a partition's owner that positions here are of: the one that was met last.

    known: (incarnation, epoch), as of `entries.Checkpoint.runs`; (0, 0): none was met
    same_below: up to there an lsn that this shard knew at its start is that of the same record in the run met last"""

    __slots__ = ("known", "same_below")

    def __init__(self) -> None:
        self.known = (0, 0)
        self.same_below = LSN_MAX

    def met(self, incarnation: int, starts: Sequence[tuple[int, int]], next_lsn: int) -> int:
        """Meet one; returns up to where its records are those that earlier runs have shown here.

        A run that died may have shown records of QoS 0 that it never wrote: the next ones give out their lsns again,
        perhaps all of them before they are met. starts: of the owner's runs, (epoch, lsn)"""
        known, epoch = self.known
        self.known = incarnation, starts[-1][0] if starts else 0
        same_below = next_lsn
        if known not in (0, incarnation):
            others = [lsn for number, lsn in starts[:-1] if number > epoch]
            same_below = min([next_lsn] + others + [lsn for _, lsn in starts[-1:]])
        self.same_below = min(self.same_below, same_below)
        return same_below
