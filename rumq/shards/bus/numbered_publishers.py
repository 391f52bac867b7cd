"""The numbers that a shard gives to those who publish from it to one partition of another shard.

They are the link's alone, not the log's: a number that nobody holds any more is given to another client id, once the
owner has committed the last record with it. So there are as many as sessions, and KEPT_MAX."""

from __future__ import annotations

from collections import OrderedDict

from commitlog.names.held_numbers import HeldNumbers

KEPT_MAX = 1 << 12  # client ids that nobody uses: one that returns soon need not be introduced again


class NumberedPublishers:
    """names: by number; 0 is nobody's"""

    __slots__ = ("_held", "_kept_max", "_numbers", "_unused", "names")

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self.names: list[bytes] = [b""]
        self._numbers: dict[bytes, int] = {}
        self._held = HeldNumbers()  # released: since records were handed over, as those of this turn may have them
        # Number -> the sequence behind its last record, of those that nobody holds, the first one released first.
        self._unused: OrderedDict[int, int] = OrderedDict()

    def hold(self, name: bytes, committed: int) -> tuple[int, bool]:
        """The number of a client id until it is released, and whether it is new. committed: sequence at the owner"""
        number = self._numbers.get(name)
        is_new = number is None
        if number is None:
            number = self._maybe_free(committed)
            if number:
                del self._numbers[self.names[number]]
                self.names[number] = name
            else:
                number = len(self.names)
                self.names.append(name)
            self._numbers[name] = number
        self._unused.pop(number, None)
        self._held.hold(number)
        return number, is_new

    def _maybe_free(self, committed: int) -> int:
        """A number whose records are all committed; 0: none."""
        if len(self._unused) > self._kept_max:
            number, end = next(iter(self._unused.items()))
            if end <= committed:
                del self._unused[number]
                return number
        return 0

    def release(self, number: int) -> None:
        """One that held a number publishes nothing more with it."""
        self._held.release(number)

    def appended(self, end: int) -> None:
        """Records were handed over, the last one before sequence `end`: also those of this turn's released numbers."""
        for number in self._held.take_released():
            self._unused[number] = end
            self._unused.move_to_end(number)

    def known(self, name: bytes) -> int:
        return self._numbers.get(name, 0)
