"""Which of one session's readers go on now: a few at a time, the others wait for their turn.

A session may have thousands of replays, and a client may take ten messages at a time. If each acknowledgement had all
of its readers try, nearly all would be refused, after a read from disk for nothing. So a few have a turn: they alone
are woken, until they have arrived or had their share. The main reader, of what is subscribed live, needs no turn.
Knows no log and no delivery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

READERS_AT_ONCE = (
    4  # of one session: more than one, so that a partition that is slow to read does not stop the rest
)
SHARE_RECORDS = 4096  # looked at by one reader, before another one has its turn


class Cursors(Protocol):
    """What turns ask of a reader."""

    cursors: list[int]


R = TypeVar("R", bound=Cursors)


class ReaderTurns(Generic[R]):
    """Readers in the order in which they came. active: those that have a turn"""

    __slots__ = ("_began", "_waiting", "active")

    def __init__(self) -> None:
        self.active: dict[R, None] = {}
        self._waiting: dict[R, None] = {}
        self._began: dict[R, int] = {}  # where one stood when its turn began, all partitions together

    @property
    def has_waiting(self) -> bool:
        """Whether a reader waits for its turn."""
        return bool(self._waiting)

    def enqueue(self, reader: R) -> None:
        """The reader is behind: it has a turn, or waits for one."""
        if reader not in self.active:
            self._waiting[reader] = None

    def start_next(self) -> R | None:
        """Give the reader that waits longest its turn; None: nobody waits, or enough have one."""
        if not self._waiting or len(self.active) >= READERS_AT_ONCE:
            return None
        reader = next(iter(self._waiting))
        del self._waiting[reader]
        self.active[reader] = None
        self._began[reader] = sum(reader.cursors)
        return reader

    def finish(self, reader: R) -> None:
        """The reader has arrived, or is gone."""
        self._waiting.pop(reader, None)
        if reader in self.active:
            del self.active[reader]
            del self._began[reader]

    def rotate(self) -> None:
        """Those that have had their share go behind the others, if others wait."""
        if self._waiting:
            for reader in list(self.active):
                if sum(reader.cursors) - self._began[reader] >= SHARE_RECORDS:
                    self.finish(reader)
                    self._waiting[reader] = None

    def reset(self, readers: Iterable[R]) -> None:
        """The client is here (again), or has gone: these are behind, as far as is known."""
        self.active, self._began = {}, {}
        self._waiting = dict.fromkeys(readers)
