"""Whose turn it is to have a password checked: each address in turn, a bounded number of all at once.

An address that sends many only makes itself wait; one that is being held back for wrong answers gets no turn until
some of them have gone out. Knows no thread, no clock."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
WAITING_MAX, LANE_MAX, HELD_MAX = 20_000, 4_000, 32


class Lanes(Generic[T]):
    """A queue an address, served in turn; at most `running_max` items are out at once."""

    def __init__(self, running_max: int) -> None:
        self.running_max = running_max
        self.running = 0
        self.waiting = 0
        self._lanes: dict[str, deque[T]] = {}
        self._turns: deque[str] = deque()
        self._held: dict[str, int] = {}

    def put(self, address: str, item: T) -> bool:
        """False: too many wait already."""
        lane = self._lanes.get(address)
        if self.waiting >= WAITING_MAX or (lane is not None and len(lane) >= LANE_MAX):
            return False
        if lane is None:
            lane = self._lanes[address] = deque()
            self._turns.append(address)
        lane.append(item)
        self.waiting += 1
        return True

    def maybe_next(self) -> T | None:
        """The item whose turn it is, if one more may be out; `finished` when it is done."""
        if self.running >= self.running_max:
            return None
        for _ in range(len(self._turns)):
            address = self._turns.popleft()
            if self._held.get(address, 0) >= HELD_MAX:
                self._turns.append(address)
                continue
            lane = self._lanes[address]
            item = lane.popleft()
            if lane:
                self._turns.append(address)
            else:
                del self._lanes[address]
            self.running += 1
            self.waiting -= 1
            return item
        return None

    def finished(self) -> None:
        self.running -= 1

    def hold(self, address: str) -> None:
        """A refusal for the address waits to go out."""
        self._held[address] = self._held.get(address, 0) + 1

    def release(self, address: str) -> None:
        """... and has gone."""
        left = self._held.get(address, 1) - 1
        if left:
            self._held[address] = left
        else:
            self._held.pop(address, None)
