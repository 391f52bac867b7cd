"""Rate limit of one client's replays: as fast as its token buckets refill."""

from __future__ import annotations

from collections.abc import Callable

from rumq.session.flow_control.rate_limits import Bucket

WAIT_SECONDS_MAX = 3600.0


class ReplayThrottle:
    """is_spent: nothing more may be sent until `go_on` is called."""

    __slots__ = ("_buckets", "_go_on", "_later", "_monotonic", "is_spent")

    def __init__(
        self, buckets: tuple[Bucket, ...], monotonic: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None], go_on: Callable[[], None],
    ) -> None:  # fmt: skip
        """later: calls back in a turn after so many seconds; go_on: called when the buckets have refilled"""
        self._buckets, self._monotonic, self._later, self._go_on = buckets, monotonic, later, go_on
        self.is_spent = False

    def spend(self, messages: int, size: int) -> None:
        """Count what was sent."""
        now = self._monotonic()
        wait = max(bucket.spend(messages, size, now) for bucket in self._buckets)
        if wait > 0 and not self.is_spent:
            self.is_spent = True
            self._later(min(wait, WAIT_SECONDS_MAX), self._filled)

    def _filled(self) -> None:
        self.is_spent = False
        self._go_on()
