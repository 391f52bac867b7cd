"""Where committed offsets are kept: a file of a broker alone, or the journal of a cluster's shard 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rumq.kafka.groups.commit_entries import Commit, Entry


class CommitsLost(OSError):
    """Another coordinator goes on with the offsets, or nobody knows: whoever kept them is one no more."""


class CommitStore(Protocol):
    """damage: what could not be read; empty: nothing"""

    damage: str

    def read(self) -> list[Entry]:
        """All entries, once. raises: OSError, DataDirectoryError for a file of a newer version"""

    async def keep(self, entries: Sequence[Entry], all_of: Callable[[], Iterable[Commit]]) -> None:
        """Returns once they are as safe as a commit is promised to be. all_of: every commit there is, before these

        raises: OSError: they are not; CommitsLost: nobody knows"""

    async def is_current(self) -> bool:
        """Whether no other coordinator can have changed something when this was asked."""

    def close(self) -> None: ...
