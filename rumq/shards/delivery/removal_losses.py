"""Before retention removes records, readers that have not read them move past them, and their losses are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from router.readers.reader import Reader
from router.shard import ShardRouter
from rumq.loop.ports import EffectSink, Timers
from rumq.session.journal.reader_positions import cursors_of
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.delivery.lost_ranges import LostRanges

PATIENCE_SECONDS = 10.0  # retention waits at most so long until lost records are counted


class RemovalPeers(Protocol):
    """The other shards, whose readers lose records of our partitions."""

    @property
    def count(self) -> int: ...

    def leave_behind(self, index: int, next_lsn: int, each: Callable[[], None]) -> None:
        """Tell them what is about to be removed; `each` is called for each that has counted its losses."""


class RemovalLosses:
    """Counts losses before a removal, here and in other shards."""

    def __init__(
        self, timers: Timers, router: ShardRouter, sessions: dict[str, Session], journal: JournalRecorder,
        effects: EffectSink, losses: LostRanges, peers: RemovalPeers,
    ) -> None:  # fmt: skip
        self._timers, self._router, self._sessions, self._journal = timers, router, sessions, journal
        self._effects, self._losses, self._peers = effects, losses, peers

    def before_removal(self, index: int, next_lsn: int, then: Callable[[], None]) -> None:
        """Count what readers here and in other shards have not had of a partition below `next_lsn`; then call back."""
        left = 1 + self._peers.count
        over = False

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                go()

        def go() -> None:
            nonlocal over
            if not over:
                over = True
                then()

        self._peers.leave_behind(index, next_lsn, one_less)
        self.leave_behind(index, next_lsn, one_less)
        if not over:
            self._timers.later(PATIENCE_SECONDS, go)

    def leave_behind(self, index: int, next_lsn: int, then: Callable[[], None]) -> None:
        """Bring readers of this shard that stand below an lsn up to it, and count what they lose."""
        router, sessions = self._router, self._sessions
        readers = [
            reader
            for session in sessions.values()
            for reader in session.subscriber.readers()
            if is_behind(reader, index, next_lsn)
        ]
        shares = [share.reader for share in router.sharing.shares.values() if share.is_here]
        readers += [reader for reader in shares if is_behind(reader, index, next_lsn)]
        lost = router.delivery.skip(router.feeds[index], readers, next_lsn)
        marks = [(feed.visible_lsn, feed.committed_lsn) for feed in router.feeds]
        for reader in readers:
            session = sessions.get(reader.key)
            if session is not None and reader.share is None:
                self._journal.replay_started(session, reader.number, cursors_of(reader, marks))
        for effect in lost:
            self._effects.carry_out(effect)
        if readers:
            self._losses.count_removed(index, next_lsn, then)
        else:
            then()


def is_behind(reader: Reader, index: int, lsn: int) -> bool:
    """Whether a reader's place in a partition is known and below an lsn."""
    return reader.start is None and not reader.is_live(index) and reader.cursors[index] < lsn
