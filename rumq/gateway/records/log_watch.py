"""Tells those who follow the log that it has grown: one look at its files for all of them, and none without them.

Watchers are bounded: of all, of a network, and of a token. docs/reference/gateway.md, "Following the log"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from rumq.errors import RumqError

LOOK_SECONDS = 0.1
Ends = dict[str, int]


class TooManyWatch(RumqError):
    """So many requests follow the log already."""


class LogWatch:
    """ends: of each partition the end of what may be read, called on a thread; count_max: watchers at once, of which
    half may be of one network (an IPv4 address, an IPv6 /64), and half of one token"""

    def __init__(
        self, ends: Callable[[], Ends], count_max: int,
        on_thread: Callable[[Callable[[], Ends]], Awaitable[Ends]] = trio.to_thread.run_sync,
    ) -> None:  # fmt: skip
        self._ends, self._on_thread = ends, on_thread
        self._count_max, self._share = count_max, max(1, count_max // 2)
        self._holders: Counter[tuple[str, str]] = Counter()
        self._moved, self._begun = trio.Event(), trio.Event()
        self.count = 0

    @property
    def moved(self) -> trio.Event:
        """Is set when the log has grown, or rights have changed, after this was asked for: ask before reading."""
        return self._moved

    def wake(self) -> None:
        """Have every watcher look again: at the log, and at what it may read."""
        self._moved.set()
        self._moved = trio.Event()

    async def run(self) -> None:
        """Look while somebody follows, until cancelled."""
        known: Ends | None = None
        while True:
            await self._begun.wait()
            try:
                found: Ends | None = await self._on_thread(self._ends)
            except OSError:
                found = None  # watchers find out by reading
            if found is None or found != known:
                known = found
                self.wake()
            await trio.sleep(LOOK_SECONDS)

    @contextmanager
    def place(self, network: str, token: str) -> Iterator[None]:
        """Of one watcher. raises: TooManyWatch"""
        holders = (("network", network), ("token", token))
        if self.count >= self._count_max:
            raise TooManyWatch(f"{self.count} requests follow the log already (gateway.watchers_max)")
        for kind, name in holders:
            if self._holders[kind, name] >= self._share:
                raise TooManyWatch(
                    f"{self._share} requests of this {kind} follow the log already, half of gateway.watchers_max"
                )
        self._holders.update(holders)
        self.count += 1
        self._begun.set()
        try:
            yield
        finally:
            self.count -= 1
            self._holders.subtract(holders)
            self._holders = +self._holders  # without those that hold none
            if not self.count:
                self._begun = trio.Event()
