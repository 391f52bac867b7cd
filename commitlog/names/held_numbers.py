"""How often each number is held, and which ones nobody holds any more."""
# compiled: warm

from __future__ import annotations


class HeldNumbers:
    """released: numbers whose last holder has left, in this order, until they are taken; one may be held again"""

    __slots__ = ("_counts", "released")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.released: list[int] = []

    def __contains__(self, number: int) -> bool:
        return number in self._counts

    def __len__(self) -> int:
        """Entries: those that are held, and those that are not taken yet."""
        return len(self._counts) + len(self.released)

    def hold(self, number: int) -> None:
        """Once more: each hold wants a release."""
        self._counts[number] = self._counts.get(number, 0) + 1

    def release(self, number: int) -> None:
        """One that held it does not any more; nothing if nobody did."""
        left = self._counts.get(number, 0) - 1
        if left > 0:
            self._counts[number] = left
        elif not left:
            del self._counts[number]
            self.released.append(number)

    def take_released(self) -> list[int]:
        """Those that nobody holds, of what was released since the last call."""
        released, self.released = self.released, []
        return [number for number in released if number not in self._counts]
