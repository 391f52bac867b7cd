"""A planned hand-over: the leader takes nothing more, its successor gets everything, and claims the shard.

No client sees an error: publishers are not read meanwhile. If nothing comes of it, the leader goes on."""

from __future__ import annotations

from collections.abc import Callable

CATCH_UP_SECONDS_MAX = 10.0
CLAIM_SECONDS_MAX = 2.0


class HandOver:
    """to: node id; is_over: it has failed, for a leader that was succeeded is no more"""

    def __init__(
        self, to: str, now: float, *, is_written: Callable[[], bool], has_all: Callable[[str], bool],
        succeed: Callable[[str], None], done: Callable[[str], None],
    ) -> None:  # fmt: skip
        """now: monotonic seconds; is_written: nothing is pending here; has_all: a follower has synced everything

        succeed: tells it to claim; done: told why it has failed"""
        self.to = to
        self._is_written, self._has_all = is_written, has_all
        self._succeed, self._done = succeed, done
        self._until = now + CATCH_UP_SECONDS_MAX
        self._has_asked = self.is_over = False

    def look(self, now: float) -> None:
        """Go on as far as is possible now."""
        if self.is_over:
            return
        if not self._has_asked and self._is_written() and self._has_all(self.to):
            self._has_asked, self._until = True, now + CLAIM_SECONDS_MAX
            self._succeed(self.to)
        elif now >= self._until:
            self.is_over = True
            asked = "it did not take office in time"
            self._done(asked if self._has_asked else "it did not get everything in time")
