"""New connections a second of one listener, fair by address: a token bucket before anything is spent on a connection.

What is over the rate waits, without being read from: addresses (IPv6: /64) take turns. So an address gets what the
others leave, and one that comes anew is served after one connection of each other address. Few may wait; beyond that
the address with the most loses its newest. No sockets, no clock here."""
# compiled: warm

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

T = TypeVar("T")
WAIT_SECONDS_MAX = 2.0  # so much as the rate serves within this time may wait: a client gives up soon
ONE = 1.0 - 1e-9  # a token, as sums of fractions have it
WAITING_MIN, WAITING_MAX = 16, 256  # connections that wait, whatever the rate is: each has a descriptor


@dataclass(slots=True)
class Arrivals:
    """New connections over the listener's rate, so far: delayed ones had to wait, refused ones could not."""

    delayed: int = 0
    refused: int = 0


class ConnectionRate(Generic[T]):
    """Of one listener, however many sockets it has."""

    def __init__(
        self, per_second: int, counts: Arrivals, refuse: Callable[[T], None],
        on_limited: Callable[[str], None] = lambda holder: None,
    ) -> None:  # fmt: skip
        """per_second: 0: any; counts: are counted up; refuse: is called with each connection that cannot wait

        on_limited: called with the address at the first, second, fourth, eighth ... connection that waits, and likewise
        at those that are refused"""
        self._counts = counts
        self._refuse, self._on_limited = refuse, on_limited
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()  # by address, in the order of their turns
        self._count = 0
        self._tokens = float(per_second)
        self._at = 0.0
        self.set(per_second)

    def set(self, per_second: int) -> None:
        """Another rate, from now on."""
        self.per_second = per_second
        self._tokens = min(self._tokens, float(per_second)) if per_second else 0.0
        self._waiting_max = min(WAITING_MAX, max(WAITING_MIN, ceil(WAIT_SECONDS_MAX * per_second)))

    def __len__(self) -> int:
        """How many wait."""
        return self._count

    def admit(self, item: T, holder: str, now: float) -> bool:
        """Whether a new connection may be served at once; else it waits, or is refused. holder: its address"""
        if self.passes(now):
            return True
        self.delay(item, holder)
        return False

    def passes(self, now: float) -> bool:
        """Whether a new connection may be served at once."""
        if not self.per_second:
            return True
        self._refill(now)
        if self._count or self._tokens < ONE:
            return False
        self._tokens -= 1.0
        return True

    def delay(self, item: T, holder: str) -> None:
        """Have a new connection that may not wait, or refuse one."""
        self._counts.delayed += 1
        if is_power_of_two(self._counts.delayed):
            self._on_limited(holder)
        self._waiting.setdefault(holder, deque()).append(item)
        self._count += 1
        if self._count > self._waiting_max:
            self._refuse_one()

    def maybe_next(self, now: float) -> T | None:
        """One that has waited, if one may be served now."""
        if not self._count:
            return None
        self._refill(now)
        if self.per_second:
            if self._tokens < ONE:
                return None
            self._tokens -= 1.0
        holder, items = self._waiting.popitem(last=False)
        item = items.popleft()
        self._count -= 1
        if items:
            self._waiting[holder] = items  # behind the other addresses
        return item

    def seconds_to_next(self, now: float) -> float:
        """Until one that waits may be served."""
        self._refill(now)
        return max(0.0, 1.0 - self._tokens) / self.per_second if self.per_second else 0.0

    def take_all(self) -> list[T]:
        """All that wait: the listener ends."""
        found = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        self._count = 0
        return found

    def _refill(self, now: float) -> None:
        """A bucket holds what a second brings: as many come at once after a quiet one."""
        self._tokens = min(float(self.per_second), self._tokens + max(0.0, now - self._at) * self.per_second)
        self._at = now

    def _refuse_one(self) -> None:
        holder = max(self._waiting, key=lambda each: len(self._waiting[each]))
        items = self._waiting[holder]
        item = items.pop()
        if not items:
            del self._waiting[holder]
        self._count -= 1
        self._counts.refused += 1
        self._refuse(item)
        if is_power_of_two(self._counts.refused):
            self._on_limited(holder)


def is_power_of_two(count: int) -> bool:
    return count & (count - 1) == 0
