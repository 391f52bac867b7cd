"""The disk of a replica, as the sans-IO parts of replication see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rumq.cluster.replication import messages as m

# `m.Members` as a plain tuple, as it is noted on disk.
Holding = tuple[int, str]  # of a copy: its end, and the name of its last segment
Voters = tuple[int, int, list[str], list[str] | None]

DataFrame = m.Cut | m.Open | m.Write | m.Names | m.TrimCopy


class CutRefused(Exception):
    """What a leader or a source sends would cut what this replica knows to be committed. Nothing was changed."""

    def __init__(self, partition: str, why: str) -> None:
        super().__init__(partition, why)
        self.partition, self.why = partition, why

    def __str__(self) -> str:
        return self.why


class LogCopies(Protocol):
    """The partitions of one shard as they are on this disk, by key."""

    def ends(self) -> dict[str, int]:
        """The lsn behind the last whole record of each; all of it is synced when this returns."""

    def inventory(self, partition: str) -> list[m.SegmentInfo]: ...

    def begins_anew(self, cut: m.Cut) -> bool:
        """Whether this cut empties the copy, because what it has is no part of a log that begins before it does."""

    def apply(self, frame: DataFrame, raw: memoryview) -> None:
        """Cut, begin a segment, write chunks or trim.

        raises: CutRefused; OSError, LogError: the copy is not usable any more

        After a cut, `sync` tells of the partition even if nothing has changed."""

    def sync(self) -> list[tuple[str, int, str, int]]:
        """Sync what was applied since; (partition, next lsn, name, stop) of each partition that was touched."""

    def note_committed(self, partition: str, lsn: int) -> None:
        """Nothing below is ever cut."""

    def holdings(self) -> dict[str, Holding]:
        """As `ends`, with the name of each partition's last segment, "" where there is none."""

    def marks(self) -> dict[str, int]:
        """What was noted as committed, by partition; it may be more than a damaged copy has."""

    def forget_marks(self) -> None:
        """An operator has forced a leader: any of this may be cut."""


class ReplicaState(Protocol):
    """promised, promised_term: the newest term that was promised; the term is the claim, "" where it is not known

    opened, opened_term: the term of the last leader whose log was completely here; voters: as noted when it was opened
    forced: the last epoch that an operator forced. Every change is durable when it returns, and raises OSError"""

    @property
    def promised(self) -> int: ...
    @property
    def promised_term(self) -> str: ...
    @property
    def opened(self) -> int: ...
    @property
    def opened_term(self) -> str: ...
    @property
    def voters(self) -> Voters | None: ...
    @property
    def forced(self) -> int: ...
    @property
    def forgets(self) -> bool:
        """Promises may be missing, until the doubt about the log is over."""

    def promise(self, epoch: int, term: str = "", forced: int = 0) -> None:
        """forced: of the term; a higher one than before drops the marks, by the operator's word"""

    def open(self, epoch: int, term: str = "", voters: Voters | None = None) -> None: ...

    def note_voters(self, voters: Voters) -> None: ...

    def note_copies(self, marks: Mapping[str, int], held: Mapping[str, Holding]) -> None:
        """What is committed, which only grows, and what is synced here, by partition."""

    def note_cut(self, partition: str) -> None:
        """Before a copy is cut: what is not committed of it is not missed later."""

    def trust(self, forced: int) -> None:
        """An operator has chosen this copy in this epoch: a doubt about it is over, and its marks are dropped."""

    def distrust(self, *, forgets: bool = False) -> None:
        """The log here may lack what was acknowledged. forgets: ... and what was promised"""

    def note_restored(self, restored: int) -> bool:
        """As of `View.restored`: doubt the log, once. returns: whether that is news"""
