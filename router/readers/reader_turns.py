"""Round robin among one session's readers that are behind: a few are active, the others wait.

A session may have thousands of replays, and an in-flight window of ten messages. If each acknowledgement resumed all
of its readers, nearly all would be refused after a read from disk. So a few are active until they have caught up or had
their share. The main reader, of live subscriptions, needs no turn."""
# compiled: warm

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

READERS_AT_ONCE = 4  # more than one, so that a partition that is slow to read does not stop the others
SHARE_RECORDS = 4096  # looked at by one reader, before another one has its turn


class Cursors(Protocol):
    """The part of a reader that turns use."""

    cursors: list[int]


R = TypeVar("R", bound=Cursors)


class ReaderTurns(Generic[R]):
    """Readers in the order in which they came. active: those whose turn it is"""

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
        """The reader is behind: it waits for a turn, unless it has one."""
        if reader not in self.active:
            self._waiting[reader] = None

    def start_next(self) -> R | None:
        """Make the reader that waits longest active; None: none waits, or enough are active."""
        if not self._waiting or len(self.active) >= READERS_AT_ONCE:
            return None
        reader = next(iter(self._waiting))
        del self._waiting[reader]
        self.active[reader] = None
        self._began[reader] = sum(reader.cursors)
        return reader

    def finish(self, reader: R) -> None:
        """The reader has caught up, or is closed."""
        self._waiting.pop(reader, None)
        if reader in self.active:
            del self.active[reader]
            del self._began[reader]

    def rotate(self) -> None:
        """If others wait, active readers that had their share go to the end of the queue."""
        if self._waiting:
            for reader in list(self.active):
                if sum(reader.cursors) - self._began[reader] >= SHARE_RECORDS:
                    self.finish(reader)
                    self._waiting[reader] = None

    def reset(self, readers: Iterable[R]) -> None:
        """The client connected or disconnected: these readers may be behind."""
        self.active, self._began = {}, {}
        self._waiting = dict.fromkeys(readers)
