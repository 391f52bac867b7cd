"""Kernel: from a name back to its number, for a partition's list of topic names.

A dictionary of a million names weighs 120 MB beside the names themselves; this index 16: a slot is hash (32 bits) and
number + 1. Knows no file. A name is never removed."""

from array import array

import cython

# Written out where it is used, the compiler takes it for a Python number.
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
FIRST_SLOTS = cython.declare(cython.Py_ssize_t, 1 << 8)


@cython.final
@cython.cclass
class NumberOf:
    """name -> number of each name of a list that only grows. Of equal names the last one counts."""

    names: list
    slots: cython.ulonglong[::1]
    mask: cython.Py_ssize_t
    used: cython.Py_ssize_t

    def __init__(self, names: list) -> None:
        self.names = names
        size: cython.Py_ssize_t = FIRST_SLOTS
        while size * 2 < len(names) * 3:
            size *= 2
        self.slots = array("Q", bytes(8 * size))
        self.mask = size - 1
        self.used = 0
        number: cython.Py_ssize_t
        for number in range(len(names)):
            self.add(number)

    def __len__(self) -> int:
        return self.used

    def get(self, name: bytes) -> "int | None":
        """The number of a name; None when it has none."""
        slot: cython.ulonglong = self.slots[self.place(name)]
        if not slot:
            return None
        return (slot & LOW) - 1

    def __getitem__(self, name: bytes) -> int:
        number = self.get(name)
        if number is None:
            raise KeyError(name)
        return number

    def __contains__(self, name: bytes) -> bool:
        return self.get(name) is not None

    def items(self) -> "list[tuple[bytes, int]]":
        return list({name: number for number, name in enumerate(self.names)}.items())

    def add(self, number: cython.Py_ssize_t) -> None:
        """Have `names[number]` found."""
        if self.used * 3 >= (self.mask + 1) * 2:
            self.grow()
        name: bytes = self.names[number]
        place: cython.Py_ssize_t = self.place(name)
        if not self.slots[place]:
            self.used += 1
        hashed: cython.ulonglong = hash(name) & LOW
        self.slots[place] = (hashed << 32) | (number + 1)

    def grow(self) -> None:
        """Double the slots without reading names, which would take as long as reading all of them."""
        old: cython.ulonglong[::1] = self.slots
        mask: cython.Py_ssize_t = 2 * self.mask + 1
        larger: cython.ulonglong[::1] = array("Q", bytes(8 * (mask + 1)))
        at: cython.Py_ssize_t
        place: cython.Py_ssize_t
        for at in range(self.mask + 1):
            if old[at]:
                place = cython.cast(cython.Py_ssize_t, old[at] >> 32) & mask
                while larger[place]:
                    place = (place + 1) & mask
                larger[place] = old[at]
        self.slots = larger
        self.mask = mask

    @cython.ccall
    def place(self, name: bytes) -> cython.Py_ssize_t:
        """The slot of a name, or the free one where it would be."""
        hashed: cython.ulonglong = hash(name) & LOW
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, hashed) & self.mask
        slot: cython.ulonglong = self.slots[place]
        while slot:
            if (slot >> 32) == hashed and self.names[cython.cast(cython.Py_ssize_t, slot & LOW) - 1] == name:
                return place
            place = (place + 1) & self.mask
            slot = self.slots[place]
        return place
