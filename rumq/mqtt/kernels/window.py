"""Kernel: the in-flight window of a session, its unacknowledged messages of QoS 1 and 2. MQTT 5.0, 4.3, 4.4 and 4.9.

Packet ids are given in order: message number `s` of a session carries packet id `s mod 65535 + 1`, so an id
leads to its message without a map. A ring of slots keeps, for each message in flight, its state and where in
the log it came from, so that it can be sent again."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING

# State of a slot.
DONE = cython.declare(cython.int, 0)
WAITS_PUBACK = cython.declare(cython.int, 1)
WAITS_PUBREC = cython.declare(cython.int, 2)
WAITS_PUBCOMP = cython.declare(cython.int, 3)

IDS = cython.declare(cython.ulonglong, 65535)
PARTITION_MASK = cython.declare(cython.uint, 63)  # of a code, router.readers.slots


@cython.cclass
class Window:
    """The in-flight window of one session, `limit` messages wide. Its fields are typed in window.pxd."""

    def __init__(self, limit: cython.Py_ssize_t) -> None:
        self.limit = limit
        self.in_flight = 0
        self.head = 0
        self.next = 0
        self.completed = 0
        self.states = None
        self.resize(16)

    def resize(self, capacity: cython.Py_ssize_t) -> None:
        """Make the ring `capacity` slots long (a power of two), keeping what is in it."""
        states = bytearray(capacity)
        lsns = bytearray(8 * capacity)
        readers = bytearray(4 * capacity)
        new_lsns: cython.ulonglong[::1] = memoryview(lsns).cast("Q")
        new_readers: cython.uint[::1] = memoryview(readers).cast("I")
        new_states: cython.uchar[::1] = states
        seq: cython.ulonglong
        if self.states is not None:
            old_lsns: cython.ulonglong[::1] = memoryview(self.lsns).cast("Q")
            old_readers: cython.uint[::1] = memoryview(self.readers).cast("I")
            old_states: cython.uchar[::1] = self.states
            seq = self.head
            while seq != self.next:
                new_states[seq & (capacity - 1)] = old_states[seq & self.mask]
                new_lsns[seq & (capacity - 1)] = old_lsns[seq & self.mask]
                new_readers[seq & (capacity - 1)] = old_readers[seq & self.mask]
                seq += 1
        self.states = states
        self.lsns = lsns
        self.readers = readers
        self.mask = capacity - 1

    @cython.ccall
    def credit(self) -> cython.Py_ssize_t:
        """How many more messages may be sent now."""
        room: cython.Py_ssize_t = 32768 - cython.cast(cython.Py_ssize_t, self.next - self.head)
        free: cython.Py_ssize_t = self.limit - self.in_flight
        if free > room:
            free = room
        return free if free > 0 else 0

    @cython.ccall
    def reserve(self, count: cython.Py_ssize_t) -> None:
        """Have slots for `count` more messages (at most `credit()`)."""
        wanted: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.next - self.head) + count
        capacity: cython.Py_ssize_t = self.mask + 1
        if wanted > capacity:
            while capacity < wanted:
                capacity *= 2
            self.resize(capacity)

    @cython.ccall
    def acknowledge(self, head: cython.uint, pid: cython.uint) -> cython.int:
        """Take PUBACK (0x40), PUBREC (0x50) or PUBCOMP (0x70); -1: no such message waits for that."""
        states: cython.p_uchar
        seq: cython.ulonglong
        state: cython.int
        start: cython.ulonglong = self.head % IDS
        want: cython.ulonglong = pid - 1
        seq = self.head + ((want + IDS - start) % IDS)
        if seq >= self.next:
            return -1
        if cython.compiled:
            states = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.states))
        else:
            states = self.states
        state = states[seq & self.mask]
        if head == 0x50:
            if state == WAITS_PUBREC:
                states[seq & self.mask] = WAITS_PUBCOMP
                return 1
            return 0 if state == WAITS_PUBCOMP else -1
        if head == 0x40 and state != WAITS_PUBACK:
            return -1
        if head == 0x70 and state != WAITS_PUBCOMP:
            return -1
        self.finish(seq)
        return 1

    def refuse(self, pid: cython.uint) -> bool:
        """End the flow of `pid`: the client answered PUBACK or PUBREC with an error. False: unknown."""
        states: cython.uchar[::1] = self.states
        seq: cython.ulonglong = self.head + (((pid - 1) + IDS - self.head % IDS) % IDS)
        if pid == 0 or seq >= self.next or states[seq & self.mask] == DONE:
            return False
        self.finish(seq)
        return True

    @cython.cfunc
    def finish(self, seq: cython.ulonglong) -> cython.void:
        states: cython.p_uchar
        if cython.compiled:
            states = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.states))
        else:
            states = self.states
        states[seq & self.mask] = DONE
        self.in_flight -= 1
        self.completed += 1
        while self.head != self.next and states[self.head & self.mask] == DONE:
            self.head += 1

    def slots(self, first: int, stop: int) -> tuple[bytes, bytes, bytes]:
        """States (u8), lsns (u64) and codes (u32) of messages `first` to `stop`, which are in the ring."""
        capacity = self.mask + 1
        begin, count = first & self.mask, stop - first
        tail = min(count, capacity - begin)
        found = []
        for ring, width in ((self.states, 1), (self.lsns, 8), (self.readers, 4)):
            with memoryview(ring) as view:
                found.append(
                    bytes(view[begin * width : (begin + tail) * width]) + bytes(view[: (count - tail) * width])
                )
        return found[0], found[1], found[2]

    def put(self, first: int, states: bytes, lsns: bytes, codes: bytes) -> None:
        """Take messages as `slots` gave them, from number `first` on; what is between is done.

        A window that is made again from what was noted of another (docs/explanation/durability.md)."""
        stop = first + len(states)
        if self.head == self.next:
            self.head = self.next = first
        if stop > self.next:
            self.reserve(stop - self.next)
        slot_states = self.states
        slot_lsns = memoryview(self.lsns).cast("Q")
        slot_codes = memoryview(self.readers).cast("I")
        from_lsns, from_codes = memoryview(lsns).cast("Q"), memoryview(codes).cast("I")
        while self.next < first:
            slot_states[self.next & self.mask] = DONE
            self.next += 1
        for at in range(len(states)):
            slot = (first + at) & self.mask
            slot_states[slot] = states[at]
            slot_lsns[slot] = from_lsns[at]
            slot_codes[slot] = from_codes[at]
            if states[at] != DONE:
                self.in_flight += 1
        if stop > self.next:
            self.next = stop
        while self.head != self.next and slot_states[self.head & self.mask] == DONE:
            self.head += 1

    def drop_from(self, partition: int, lsn: int) -> int:
        """End the messages of a partition from `lsn` on: the log has lost them. Returns how many."""
        lsns = memoryview(self.lsns).cast("Q")
        codes = memoryview(self.readers).cast("I")
        dropped = 0
        for seq in range(self.head, self.next):
            slot = seq & self.mask
            if self.states[slot] != DONE and codes[slot] & PARTITION_MASK == partition and lsns[slot] >= lsn:
                self.finish(seq)
                dropped += 1
        return dropped

    def waiting(self) -> list[tuple[int, int, int, int]]:
        """(packet id, state, reader, lsn) of each message in flight, oldest first."""
        lsns = memoryview(self.lsns).cast("Q")
        readers = memoryview(self.readers).cast("I")
        found = []
        seq = self.head
        while seq != self.next:
            slot = seq & self.mask
            if self.states[slot] != DONE:
                found.append((int(seq % IDS) + 1, self.states[slot], readers[slot], lsns[slot]))
            seq += 1
        return found

    def state_of(self, pid: cython.uint) -> int:
        """The state of the message that has a packet id; DONE where none is in flight with it."""
        seq: cython.ulonglong = self.head + (((pid - 1) + IDS - self.head % IDS) % IDS)
        if pid == 0 or seq >= self.next:
            return DONE
        return int(self.states[seq & self.mask])

    def unanswered_from(self, pid: cython.uint) -> int:
        """How many messages, from the one with a packet id on, wait for PUBACK or PUBREC. Cost: linear in the window"""
        states: cython.const[cython.uchar][::1] = self.states
        seq: cython.ulonglong = self.head + (((pid - 1) + IDS - self.head % IDS) % IDS)
        found: cython.Py_ssize_t = 0
        while seq < self.next:
            state: cython.int = states[seq & self.mask]
            if state in (WAITS_PUBACK, WAITS_PUBREC):
                found += 1
            seq += 1
        return found
