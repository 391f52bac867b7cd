"""Kernel: topic name -> number, an open hash table for a million names and more; one lookup per message.

A dictionary needs a bytes object per lookup and compares objects all over the memory: five cache misses instead of
three, 180 bytes a name instead of 60. Here names are stored one behind the other; a slot has the name's hash (32 bits),
its position (32 bits, in units of 8 bytes) and value. The table is rehashed a little with each name added. As plain
Python it is a dictionary. A name is never removed."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.stdlib import calloc, free, malloc, realloc
    from cython.cimports.libc.string import memcmp, memcpy
    from cython.cimports.posix.mman import MADV_HUGEPAGE, madvise
    from cython.cimports.rumq.mqtt.kernels.cache_line import touch

FIRST_SLOTS = cython.declare(cython.Py_ssize_t, 1 << 10)
FIRST_NAMES = cython.declare(cython.Py_ssize_t, 1 << 14)
MOVED_AT_ONCE = cython.declare(cython.Py_ssize_t, 16)
UNIT = cython.declare(cython.Py_ssize_t, 8)
LARGE_SLOTS = cython.declare(cython.Py_ssize_t, 1 << 15)  # half a MiB: more than a core's own cache keeps
HUGE_PAGE = cython.declare(cython.size_t, 1 << 21)
AHEAD = cython.declare(cython.Py_ssize_t, 64)
# Written out where it is used, the compiler takes it for a Python number.
LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
ODD = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)


@cython.final
@cython.cclass
class TopicTable:
    """Its fields are typed in topics.pxd."""

    def __init__(self, seed: cython.ulonglong) -> None:
        """seed: 64 bits that nobody knows. Clients choose names: of a hash that they know, those that collide."""
        self.count = 0
        self.seed = seed | 1
        if cython.compiled:
            self.mask = FIRST_SLOTS - 1
            self.slots = cython.cast(cython.pointer(cython.ulonglong), calloc(FIRST_SLOTS, 16))
            self.names_size = FIRST_NAMES
            self.names = cython.cast(cython.p_char, malloc(FIRST_NAMES))
            self.names_used = UNIT  # an entry is never 0
            if not self.slots or not self.names:
                raise MemoryError
        else:
            self.plain = {}

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.slots)
            free(self.old)
            free(self.names)

    def __len__(self) -> int:
        return self.count

    def get(self, name: bytes) -> "int | None":
        """The value of a name; None when it has none."""
        if cython.compiled:
            text: cython.p_char = name
            if self.look(cython.cast(cython.pointer(cython.const[cython.uchar]), text), len(name)):
                return self.found
            return None
        return self.plain.get(name)

    def __contains__(self, name: bytes) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: bytes) -> int:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: bytes, value: cython.longlong) -> None:
        """Add a name, or give it another value. Names have at most 65,535 bytes."""
        if not cython.compiled:
            self.plain[name] = value
            self.count = len(self.plain)
            return
        size: cython.Py_ssize_t = len(name)
        text: cython.p_char = name
        key: cython.pointer(cython.const[cython.uchar]) = cython.cast(cython.pointer(cython.const[cython.uchar]), text)
        hashed: cython.uint = self.hash(key, size)
        place: cython.Py_ssize_t = self.at(self.slots, self.mask, hashed, key, size)
        if self.slots[2 * place]:
            self.slots[2 * place + 1] = cython.cast(cython.ulonglong, value)
            return
        if self.old:
            place = self.at(self.old, self.old_mask, hashed, key, size)
            if self.old[2 * place]:
                # It is moved now, so that the new table alone says what it is.
                self.put(hashed, self.old[2 * place] & LOW, value)
                return
        needed: cython.Py_ssize_t = (2 + size + UNIT - 1) // UNIT * UNIT
        if self.names_used + needed > self.names_size:
            if self.names_used + needed > UNIT << 32:
                raise MemoryError("the names of all topics are longer than 32 GiB")
            self.grow_names(needed)
        entry: cython.Py_ssize_t = self.names_used
        self.names[entry] = cython.cast(cython.char, size & 255)
        self.names[entry + 1] = cython.cast(cython.char, size >> 8)
        memcpy(cython.address(self.names[entry + 2]), text, size)
        self.names_used += needed
        if self.old:
            self.move(MOVED_AT_ONCE)
        elif self.count * 3 > self.mask * 2:
            self.grow()
        self.put(hashed, entry // UNIT, value)
        self.count += 1

    def items(self) -> "list[tuple[bytes, int]]":
        """Every name and its value, for who wants to look at all of them."""
        if not cython.compiled:
            return list(self.plain.items())
        found: list = []
        at: cython.Py_ssize_t = UNIT
        size: cython.Py_ssize_t
        while at < self.names_used:
            size = cython.cast(cython.uchar, self.names[at]) | (
                cython.cast(cython.Py_ssize_t, cython.cast(cython.uchar, self.names[at + 1])) << 8
            )
            name: bytes = PyBytes_FromStringAndSize(cython.address(self.names[at + 2]), size)
            found.append((name, self[name]))
            at += (2 + size + UNIT - 1) // UNIT * UNIT
        return found

    def grow_names(self, needed: cython.Py_ssize_t) -> None:
        wanted: cython.Py_ssize_t = self.names_size + self.names_size // 2 + needed
        larger: cython.p_char = cython.cast(cython.p_char, realloc(self.names, wanted))
        if not larger:
            raise MemoryError
        self.names = larger
        self.names_size = wanted

    def grow(self) -> None:
        """Begin a table of twice the size; names move to it a few at a time."""
        slots: cython.pointer(cython.ulonglong) = cython.cast(
            cython.pointer(cython.ulonglong), calloc(2 * (self.mask + 1), 16)
        )
        if not slots:
            raise MemoryError
        # Large pages: else most lookups miss the processor's table of pages, too. Best effort.
        start: cython.size_t = (cython.cast(cython.size_t, slots) + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
        end: cython.size_t = (cython.cast(cython.size_t, slots) + 32 * (self.mask + 1)) // HUGE_PAGE * HUGE_PAGE
        if start < end:
            madvise(cython.cast(cython.p_void, start), end - start, MADV_HUGEPAGE)
        self.old = self.slots
        self.old_mask = self.mask
        self.moved = 0
        self.slots = slots
        self.mask = 2 * self.mask + 1

    @cython.cfunc
    def move(self, count: cython.Py_ssize_t) -> cython.void:
        """Move what stands in the next slots of the old table; it stays there too, so that others are found."""
        place: cython.Py_ssize_t = self.moved
        stop: cython.Py_ssize_t = min(self.old_mask + 1, place + count)
        entry: cython.ulonglong
        to: cython.Py_ssize_t
        while place < stop:
            entry = self.old[2 * place]
            if entry:
                # One that was given another value since is in the new table already.
                to = cython.cast(cython.Py_ssize_t, entry >> 32) & self.mask
                while self.slots[2 * to] and self.slots[2 * to] != entry:
                    to = (to + 1) & self.mask
                if not self.slots[2 * to]:
                    self.slots[2 * to] = entry
                    self.slots[2 * to + 1] = self.old[2 * place + 1]
            place += 1
        self.moved = place
        if place > self.old_mask:
            free(self.old)
            self.old = cython.NULL

    @cython.cfunc
    def put(self, hashed: cython.uint, entry: cython.ulonglong, value: cython.longlong) -> cython.void:
        """Put a name that is not in the table into its slot."""
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, hashed) & self.mask
        while self.slots[2 * place]:
            place = (place + 1) & self.mask
        self.slots[2 * place] = (cython.cast(cython.ulonglong, hashed) << 32) | entry
        self.slots[2 * place + 1] = cython.cast(cython.ulonglong, value)

    @cython.cfunc
    @cython.exceptval(check=False)
    def at(
        self,
        slots: cython.pointer(cython.ulonglong),
        mask: cython.Py_ssize_t,
        hashed: cython.uint,
        name: cython.pointer(cython.const[cython.uchar]),
        size: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """The slot of a name, or the free one where it would be."""
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, hashed) & mask
        slot: cython.ulonglong = slots[2 * place]
        text: cython.p_char
        while slot:
            if (slot >> 32) == hashed:
                text = cython.address(self.names[cython.cast(cython.Py_ssize_t, slot & LOW) * UNIT])
                if (
                    cython.cast(cython.uchar, text[0]) == (size & 255)
                    and cython.cast(cython.uchar, text[1]) == (size >> 8)
                    and memcmp(text + 2, name, size) == 0
                ):
                    return place
            place = (place + 1) & mask
            slot = slots[2 * place]
        return place

    @cython.cfunc
    @cython.exceptval(check=False)
    def look(self, name: cython.pointer(cython.const[cython.uchar]), size: cython.Py_ssize_t) -> cython.bint:
        """Whether the name has a value, which is in `found` then."""
        return self.look_by(self.hash(name, size), name, size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def look_ahead(self, name: cython.pointer(cython.const[cython.uchar]), size: cython.Py_ssize_t) -> cython.bint:
        """As `look`, for a name of the packets that `fetch` has just been given: its hash is known."""
        while self.next_ahead < self.ahead and self.ahead_names[self.next_ahead] != name:
            self.next_ahead += 1
        if self.next_ahead == self.ahead:
            return self.look(name, size)
        return self.look_by(self.ahead_hashes[self.next_ahead], name, size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def look_by(
        self,
        hashed: cython.uint,
        name: cython.pointer(cython.const[cython.uchar]),
        size: cython.Py_ssize_t,
    ) -> cython.bint:
        place: cython.Py_ssize_t = self.at(self.slots, self.mask, hashed, name, size)
        if self.slots[2 * place]:
            self.found = cython.cast(cython.longlong, self.slots[2 * place + 1])
            return True
        if self.old:
            place = self.at(self.old, self.old_mask, hashed, name, size)
            if self.old[2 * place]:
                self.found = cython.cast(cython.longlong, self.old[2 * place + 1])
                return True
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def fetch(
        self,
        packets: cython.pointer(cython.const[cython.uchar]),
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Have slots and names of the topics of the next packets fetched, all at once: in a large table each is a wait
        for memory. returns: the position up to which that is done, at least `end` in a small table"""
        self.ahead = self.next_ahead = 0
        if self.mask < LARGE_SLOTS:
            return end
        hashed: cython.uint
        count: cython.Py_ssize_t = 0
        body: cython.Py_ssize_t
        size: cython.Py_ssize_t
        shift: cython.int
        i: cython.Py_ssize_t
        entry: cython.ulonglong
        while count < AHEAD and at + 2 <= end:
            body = at + 1
            size = 0
            shift = 0
            while body < end and shift <= 21:
                size |= cython.cast(cython.Py_ssize_t, packets[body] & 0x7F) << shift
                shift += 7
                body += 1
                if packets[body - 1] < 0x80:
                    break
            if size > end - body:
                return end
            if packets[at] >> 4 == 3 and size > 2:
                at = body + size
                size = (cython.cast(cython.Py_ssize_t, packets[body]) << 8) | packets[body + 1]
                if size <= at - body - 2:
                    hashed = self.hash(packets + body + 2, size)
                    touch(self.slots + 2 * (cython.cast(cython.Py_ssize_t, hashed) & self.mask))
                    self.ahead_hashes[count] = hashed
                    self.ahead_names[count] = packets + body + 2
                    count += 1
            else:
                at = body + size
        self.ahead = count
        for i in range(count):
            entry = self.slots[2 * (cython.cast(cython.Py_ssize_t, self.ahead_hashes[i]) & self.mask)] & LOW
            touch(self.names + cython.cast(cython.Py_ssize_t, entry) * UNIT)
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def hash(self, name: cython.pointer(cython.const[cython.uchar]), size: cython.Py_ssize_t) -> cython.uint:
        """Eight bytes at a time, mixed with the seed."""
        value: cython.ulonglong = self.seed ^ (cython.cast(cython.ulonglong, size) * ODD)
        word: cython.ulonglong = 0
        at: cython.Py_ssize_t = 0
        while at + 8 <= size:
            memcpy(cython.address(word), name + at, 8)
            value = (value ^ word) * ODD
            value ^= value >> 32
            value *= self.seed
            value ^= value >> 29
            at += 8
        if at < size:
            word = 0
            memcpy(cython.address(word), name + at, size - at)
            value = (value ^ word) * ODD
            value ^= value >> 32
            value *= self.seed
            value ^= value >> 29
        value ^= value >> 32
        return cython.cast(cython.uint, value)
