"""Connections that have not greeted yet: a bounded number with a bounded number of bytes, of which the address with the
most connections loses its oldest.

So a stranger with many connections takes none from a node at another address. Sans-IO; who closes the loser and ends
those that take too long is whoever accepts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

GREETINGS_MAX = 1024  # connections at once that have not greeted
GREETING_SECONDS_MAX = 5.0  # from the open transport to the whole greeting
GREETING_BYTES_MAX = 1 << 16  # of the frame of a greeting, with what is behind it
WAITING_BYTES_MAX = 8 << 20  # of unfinished greetings together


class GreetingQueue(Generic[K]):
    """count_max: connections at once"""

    def __init__(self, count_max: int = GREETINGS_MAX) -> None:
        self.count_max = max(1, count_max)
        self._holders: dict[K, str] = {}
        self._of_holder: dict[str, dict[K, None]] = {}  # the oldest first
        self._bytes: dict[K, int] = {}
        self._bytes_in_all = 0

    def __len__(self) -> int:
        return len(self._holders)

    def __contains__(self, key: object) -> bool:
        return key in self._holders

    def add(self, key: K, holder: str) -> K | None:
        """Add a connection. holder: its address or network. returns: the one that must go for it"""
        loser = self.drop() if len(self) >= self.count_max else None
        self._holders[key] = holder
        self._of_holder.setdefault(holder, {})[key] = None
        return loser

    def hold(self, key: K, size: int) -> bool:
        """Note how many bytes of its greeting a connection has sent. returns: too many wait, so one is to be dropped"""
        if key in self._holders:
            self._bytes_in_all += size - self._bytes.get(key, 0)
            self._bytes[key] = size
        return self._bytes_in_all > WAITING_BYTES_MAX

    def drop(self) -> K | None:
        """Remove the oldest connection of the address that has the most; None if there is none."""
        if not self._holders:
            return None
        most = max(self._of_holder.values(), key=len)
        loser = next(iter(most))
        self.discard(loser)
        return loser

    def discard(self, key: K) -> None:
        """It has greeted, or is gone."""
        holder = self._holders.pop(key, None)
        self._bytes_in_all -= self._bytes.pop(key, 0)
        if holder is not None:
            same = self._of_holder[holder]
            del same[key]
            if not same:
                del self._of_holder[holder]
