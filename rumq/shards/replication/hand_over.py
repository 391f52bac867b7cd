"""A planned hand-over: the leader takes nothing more, its successor gets everything, and claims the shard.

Publishers here are not read meanwhile; once the successor has nearly everything, no client is, and what each has is
noted for it (`rumq.shards.moves`). What other shards publish does not end: after a moment nothing more of it is read,
and they publish it again to the next leader. What was read is written, however long the disk takes: messages of QoS 0
are nowhere else. If nothing comes of it, this one goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PENDING_SECONDS_MAX = 0.05  # after that only what is pending then is written
CATCH_UP_SECONDS_MAX = 10.0
HOLD_AFTER_SECONDS = 0.5  # clients are held by then, though the successor still lacks something
SETTLE_SECONDS_MAX = 5.0  # of clients: whoever still waits for something then loses its connection
CLAIM_SECONDS_MAX = 2.0


class FreezableCommit(Protocol):
    """`rumq.shards.write_path.group_commit`."""

    def is_written(self) -> bool:
        """Whether nothing is pending or being written."""

    def is_settled(self) -> bool:
        """Whether nothing is being written, nor, while it is frozen, to be written."""

    def freeze(self, is_frozen: bool) -> None:
        """Write nothing that is appended from now on; or go on."""


class HeldClients(Protocol):
    """`rumq.shards.moves.client_hold`."""

    def hold(self) -> None:
        """Read and send nothing more, as far as is possible now."""

    def is_settled(self) -> bool:
        """Whether nobody waits for anything."""

    def note(self) -> None:
        """Write down what the successor needs of them, and read nothing more of other shards."""

    def tell_noted(self) -> None:
        """It has that, and all that was read of other shards: tell them."""

    def release(self) -> None:
        """Go on with them."""


class HandOver:
    """to: node id; is_over: it has failed, for a leader that was succeeded is no more"""

    def __init__(
        self, to: str, now: float, *, commit: FreezableCommit, has_all: Callable[[str], bool],
        succeed: Callable[[str], None], done: Callable[[str], None], clients: HeldClients | None = None,
    ) -> None:  # fmt: skip
        """now: monotonic seconds; has_all: a follower has synced everything

        succeed: tells it to claim; done: told why it has failed
        clients: those whose connections go on there; None: nobody's do"""
        self.to = to
        self._commit, self._has_all = commit, has_all
        self._succeed, self._done = succeed, done
        self._clients = clients
        self._hold_at = now + HOLD_AFTER_SECONDS
        # set while clients are held: when those that are not quiet lose their connection
        self._settle_until: float | None = None
        self._is_noted = clients is None
        self._freeze_at = now + PENDING_SECONDS_MAX
        self._until = now + CATCH_UP_SECONDS_MAX
        self._has_asked = self.is_over = self._was_late = False

    def look(self, now: float) -> None:
        """Go on as far as is possible now."""
        if self.is_over:
            return
        if not self._is_noted and now < self._until:
            self._note(now)
            return
        is_frozen = now >= self._freeze_at and self._was_late
        if is_frozen:
            self._commit.freeze(True)
        self._was_late = now >= self._freeze_at  # there was a turn since, in which what was there has been taken
        is_quiet = self._commit.is_settled() if is_frozen else self._commit.is_written()
        if not self._has_asked and is_quiet and self._has_all(self.to):
            self._commit.freeze(True)
            self._has_asked, self._until = True, now + CLAIM_SECONDS_MAX
            if self._clients is not None and self._is_noted:
                self._clients.tell_noted()
            self._succeed(self.to)
        elif now >= self._until:
            self.is_over = True
            self._commit.freeze(False)
            if self._clients is not None and self._settle_until is not None:
                self._clients.release()
            asked = "it did not take office in time"
            self._done(asked if self._has_asked else "it did not get everything in time")

    def _note(self, now: float) -> None:
        """Hold the clients, and note them once they wait for nothing."""
        clients = self._clients
        assert clients is not None
        if self._settle_until is None:
            if not self._has_all(self.to) and now < self._hold_at:
                return
            self._settle_until = now + SETTLE_SECONDS_MAX
        clients.hold()
        if clients.is_settled() or now >= self._settle_until:
            clients.note()
            self._is_noted = True
            self._freeze_at = now + PENDING_SECONDS_MAX
