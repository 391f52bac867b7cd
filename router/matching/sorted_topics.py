"""A sorted map from topic names, by their bytes, to values: topics with a common prefix are adjacent.

Blocks of sorted names: adding one moves a few hundred pointers. A position is a name, which stays valid while others
come and go."""
# compiled: warm

from __future__ import annotations

from bisect import bisect_left, bisect_right

BLOCK_NAMES_MAX = 512


class SortedTopics:
    """name -> value, by name."""

    def __init__(self) -> None:
        # The first name of each block; a lower one belongs to the first block too.
        self._firsts: list[bytes] = []
        self._names: list[list[bytes]] = []
        self._values: list[list[bytes]] = []
        self.count = 0

    def get(self, name: bytes) -> bytes | None:
        """The value of a name; None when it is not here."""
        if not self._firsts:
            return None
        block, at, there = self._place(name)
        return self._values[block][at] if there else None

    def set(self, name: bytes, value: bytes) -> bytes | None:
        """Add a name or replace its value; returns the value that it had."""
        if not self._firsts:
            self._firsts, self._names, self._values = [name], [[name]], [[value]]
            self.count = 1
            return None
        block, at, there = self._place(name)
        values = self._values[block]
        if there:
            old, values[at] = values[at], value
            return old
        names = self._names[block]
        names.insert(at, name)
        values.insert(at, value)
        self.count += 1
        self._firsts[block] = names[0]
        if len(names) > BLOCK_NAMES_MAX:
            # Names that come in order leave full blocks behind, others halves.
            half = len(names) - 1 if at == len(names) - 1 else len(names) // 2
            self._firsts.insert(block + 1, names[half])
            self._names.insert(block + 1, names[half:])
            self._values.insert(block + 1, values[half:])
            del names[half:], values[half:]
        return None

    def pop(self, name: bytes) -> bytes | None:
        """Remove a name; returns its value, None when it was not here."""
        if not self._firsts:
            return None
        block, at, there = self._place(name)
        if not there:
            return None
        names = self._names[block]
        old = self._values[block].pop(at)
        del names[at]
        self.count -= 1
        if names:
            self._firsts[block] = names[0]
        else:
            del self._firsts[block], self._names[block], self._values[block]
        return old

    def page(self, name: bytes, *, after: bool) -> tuple[list[bytes], list[bytes]]:
        """Some names from `name` on, or those after it, in order, and their values; none at the end. Cost: a block"""
        if not self._firsts:
            return [], []
        block, at, there = self._place(name)
        if there and after:
            at += 1
        if at == len(self._names[block]):
            block, at = block + 1, 0
            if block == len(self._names):
                return [], []
        return self._names[block][at:], self._values[block][at:]

    def _place(self, name: bytes) -> tuple[int, int, bool]:
        """(block, place in it, whether the name is there)"""
        block = max(0, bisect_right(self._firsts, name) - 1)
        names = self._names[block]
        at = bisect_left(names, name)
        return block, at, at < len(names) and names[at] == name
