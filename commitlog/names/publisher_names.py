"""The client ids of a partition's publishers, by number, as many as are needed in memory.

A number is given once and never to another client id, so each segment's rows and names are true for ever. In memory are
those in use, those of records in memory, and the last KEPT_MAX others. A client id that has been dropped gets another
number when it publishes again; the names of older records are read with them (`commitlog.read.cold_reads`).
Knows no file and no client."""
# compiled: warm

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from commitlog.names.held_numbers import HeldNumbers

KEPT_MAX = 1 << 16  # client ids that nobody uses, 10 MB: a device that returns soon keeps its number
DROPS_A_GROUP = 1 << 10  # names dropped at once: a tenth of a millisecond


class PublisherNames:
    """next_number: the first one that was never given; has_dropped: names of numbers below it may be missing here
    written: those that the segment being written has named, by its writer

    Numbers are held by sessions and by other shards, several times if need be. For the loop's thread; other threads may
    `get`, and call `missing` and `copied`."""

    __slots__ = (
        "_held", "_kept_max", "_leaving", "_names", "_numbers", "_unused", "has_dropped", "next_number",
        "written",
    )  # fmt: skip

    def __init__(self, names: Mapping[int, bytes], next_number: int, kept_max: int = KEPT_MAX) -> None:
        """names: by number, of an earlier run; nobody uses them yet"""
        self._kept_max = kept_max
        self.next_number = max(1, next_number, 1 + max(names, default=0))
        self.has_dropped = len(names) < self.next_number - 1
        self.written: Mapping[int, bytes] = {}
        # A client id may have had several numbers: its last one is the one that it has.
        self._names = {number: names[number] for number in sorted(names) if number}
        self._numbers = {name: number for number, name in self._names.items()}
        self._held = HeldNumbers()
        # Numbers that nobody holds, in this order: since the last group (`HeldNumbers.released`), since the one before
        # it, and with the lsn behind their last record.
        self._leaving: list[int] = []
        self._unused = OrderedDict.fromkeys(self._names, 0)
        self.trim(1, 1, len(self._unused))

    def __len__(self) -> int:
        return len(self._names)

    def get(self, number: int, default: bytes = b"") -> bytes:
        """The client id; `default` where it is not in memory, or was never given."""
        return self._names.get(number, default)

    def __getitem__(self, number: int) -> bytes:
        """As `get`, for who writes the records: those in memory have theirs."""
        return self._names.get(number, b"")

    def hold(self, name: bytes) -> int:
        """The number of a client id, from 1, which stays its own until it is released; added if it has none."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self.next_number
            self._names[number] = name
            self.next_number += 1
        self._held.hold(number)
        self._unused.pop(number, None)
        return number

    def release(self, number: int) -> None:
        """One that held a number publishes nothing more with it; records that have it may not be appended yet."""
        self._held.release(number)

    def known(self, name: bytes) -> int:
        """The number of a client id; 0 if it has none, or has none any more."""
        return self._numbers.get(name, 0)

    def learn(self, names: Mapping[int, bytes]) -> None:
        """Names that others have given, which nobody here holds."""
        for number, name in names.items():
            if not number:
                continue
            if number not in self._held:
                self._unused[number] = 0
                self._unused.move_to_end(number)
            self._names[number] = name
            if self._numbers.get(name, 0) < number:
                self._numbers[name] = number
        self.next_number = max(self.next_number, 1 + max(names, default=0))
        self.trim(1, 1, len(names))

    def trim(self, next_lsn: int, memory_lsn: int, drops_max: int = DROPS_A_GROUP) -> None:
        """A group of records was written: drop what is in use no more. memory_lsn: records in memory begin here

        What is released in a turn may have records that are appended at its end, and written by the next group: so a
        number counts as unused from the second group on."""
        if not (self._leaving or self._held.released or len(self._unused) > self._kept_max):
            return
        for number in self._leaving:
            if number not in self._held:
                self._unused[number] = next_lsn
        self._leaving = self._held.take_released()
        for _ in range(min(drops_max, len(self._unused) - self._kept_max)):
            number, end_lsn = self._unused.popitem(last=False)
            if end_lsn > memory_lsn:
                self._unused[number] = end_lsn
                self._unused.move_to_end(number, last=False)
                break
            name = self._names.pop(number)
            if self._numbers.get(name) == number:
                del self._numbers[name]
            self.has_dropped = True

    def missing(self, numbers: Iterable[int]) -> set[int]:
        """Those of these numbers whose client ids are not in memory."""
        names = self._names
        return {number for number in numbers if number and number not in names}

    def copied(self, end: int) -> dict[int, bytes]:
        """The client ids in memory of the numbers below `end`."""
        return {number: name for number, name in self._names.copy().items() if number < end}
