"""A planned hand-over: the leader takes nothing more, its successor gets everything, and claims the shard.

Publishers here are not read meanwhile. What other shards publish does not end: after a moment nothing more of it is
written, and they publish it again to the next leader. If nothing comes of it, this one goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PENDING_SECONDS_MAX = 0.05  # until what is pending is left to the next leader
CATCH_UP_SECONDS_MAX = 10.0
CLAIM_SECONDS_MAX = 2.0


class Commit(Protocol):
    """`rumq.shards.write_path.group_commit`."""

    def is_written(self) -> bool:
        """Whether nothing is pending or being written."""

    def is_settled(self) -> bool:
        """Whether nothing is being written."""

    def freeze(self, is_frozen: bool) -> None:
        """Write nothing more, whatever is pending; or go on."""


class HandOver:
    """to: node id; is_over: it has failed, for a leader that was succeeded is no more"""

    def __init__(
        self, to: str, now: float, *, commit: Commit, has_all: Callable[[str], bool], succeed: Callable[[str], None],
        done: Callable[[str], None],
    ) -> None:  # fmt: skip
        """now: monotonic seconds; has_all: a follower has synced everything

        succeed: tells it to claim; done: told why it has failed"""
        self.to = to
        self._commit, self._has_all = commit, has_all
        self._succeed, self._done = succeed, done
        self._freeze_at = now + PENDING_SECONDS_MAX
        self._until = now + CATCH_UP_SECONDS_MAX
        self._has_asked = self.is_over = self._was_late = False

    def look(self, now: float) -> None:
        """Go on as far as is possible now."""
        if self.is_over:
            return
        is_frozen = now >= self._freeze_at and self._was_late
        if is_frozen:
            self._commit.freeze(True)
        self._was_late = (
            now >= self._freeze_at
        )  # there was a turn since, in which what was there has been taken
        is_quiet = self._commit.is_settled() if is_frozen else self._commit.is_written()
        if not self._has_asked and is_quiet and self._has_all(self.to):
            self._commit.freeze(True)
            self._has_asked, self._until = True, now + CLAIM_SECONDS_MAX
            self._succeed(self.to)
        elif now >= self._until:
            self.is_over = True
            self._commit.freeze(False)
            asked = "it did not take office in time"
            self._done(asked if self._has_asked else "it did not get everything in time")
