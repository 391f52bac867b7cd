"""Two rings in memory that two shards of a node share, one for each direction: long raw bytes of the bus.

The socket stays the only order, and what wakes the other side: its frame says where in the ring the bytes are. Nobody
waits for room: what the ring does not take goes over the socket. Who takes bytes copies them, and frees their space by
one number in the same memory. When a side dies the memory goes with the link.

The memory: u64 identity | u64 bytes of a ring | u64 INLINE_BYTES_MAX | at 64 and at 128 u64, how far each ring was read
| at 4,096 the rings.
It cannot change its size (F_ADD_SEALS), so that no side ends the other by cutting it off."""
# compiled: warm

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Self

from rumq.net.frames import Raw
from rumq.net.kernels import shared_memory

RING_BYTES_MAX = 2 << 20  # of one direction; with more than that the caches are cold
RING_BYTES_MIN = 64 << 10  # smaller ones are not worth their descriptor
NODE_BYTES_MAX = 64 << 20  # of all rings between the shards of a node
INLINE_BYTES_MAX = 4 << 10  # so much goes over the socket: its frame is there in any case
HEAD_BYTES = 4096
SIZE_AT, INLINE_AT = 8, 16
TAKEN_AT = (64, 128)  # each in a cache line of its own
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def ring_bytes(shards: int) -> int:
    """The bytes of one direction between two of so many shards, a power of two; 0: none."""
    each = min(RING_BYTES_MAX, NODE_BYTES_MAX // max(1, shards * (shards - 1)))
    return 1 << (each.bit_length() - 1) if each >= RING_BYTES_MIN else 0


class SharedRing:
    """One side of it. identity: the same at both sides, and no other ring's; inline_bytes_max: as INLINE_BYTES_MAX"""

    def __init__(self, memory: mmap.mmap, side: int) -> None:
        """side: 0 of who made it, 1 of the other one"""
        self._memory = memory
        self.identity = shared_memory.load(memory, 0)
        self._size = shared_memory.load(memory, SIZE_AT)
        self.inline_bytes_max = shared_memory.load(memory, INLINE_AT)
        self._put_start, self._put_taken_at = HEAD_BYTES + side * self._size, TAKEN_AT[side]
        self._take_start, self._take_taken_at = HEAD_BYTES + (1 - side) * self._size, TAKEN_AT[1 - side]
        self._end = 0  # position behind what was put
        self._base = 0  # position of the first byte since the ring was empty: before it nothing is to be taken
        self._taken = 0  # position behind what was taken

    @classmethod
    def make(cls, size: int, inline_bytes_max: int = INLINE_BYTES_MAX) -> tuple[Self, int] | None:
        """The first side, and the descriptor for the other one; None: not here. size: of a ring, a power of two"""
        if not size or not shared_memory.IS_ORDERED or not hasattr(os, "memfd_create"):
            return None
        try:
            fd = os.memfd_create("rumq-bus", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError:
            return None
        try:
            os.ftruncate(fd, HEAD_BYTES + 2 * size)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
            memory = mmap.mmap(fd, HEAD_BYTES + 2 * size)
        except OSError:
            os.close(fd)
            return None
        shared_memory.store(memory, SIZE_AT, size)
        shared_memory.store(memory, INLINE_AT, inline_bytes_max)
        # Always nine bytes long in a message.
        shared_memory.store(memory, 0, int.from_bytes(os.urandom(8), "little") | 1 << 63)
        return cls(memory, 0), fd

    @classmethod
    def accept(cls, fd: int) -> Self | None:
        """The other side, of a descriptor that is this call's; None where it is none that can be used."""
        try:
            length = os.fstat(fd).st_size
            if length <= HEAD_BYTES or fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS != SEALS:
                return None
            memory = mmap.mmap(fd, length)
        except OSError:
            return None
        finally:
            os.close(fd)
        size = shared_memory.load(memory, SIZE_AT)
        if not shared_memory.IS_ORDERED or not size or size & (size - 1) or length != HEAD_BYTES + 2 * size:
            return None
        return cls(memory, 1)

    def put(self, parts: tuple[Raw, ...], count: int) -> int:
        """Copy `count` bytes into the ring; returns their position, -1 when there is no room for them."""
        if count > self._size:
            return -1
        end = self._end
        taken = max(shared_memory.load(self._memory, self._put_taken_at), self._base)
        if taken == end:
            # All of it was taken: begin where the ring does, so that a little traffic stays in a little memory.
            end = self._base = -(-end // self._size) * self._size
        elif not end - self._size <= taken < end or count > self._size - (end - taken):
            return -1
        shared_memory.put(self._memory, self._put_start, self._size, end, parts)
        self._end = end + count
        return end

    def take(self, position: int, count: int) -> bytearray:
        """The bytes that the other side has put there. raises: ValueError where it cannot have put any"""
        # Where the bytes before ended, or at the ring's begin if all of it was taken.
        begins = position == self._taken or (position % self._size == 0 and 0 < position - self._taken < self._size)
        if not begins or not 0 < count <= self._size:
            raise ValueError(
                f"{count} bytes at {position} on the bus, of a ring of {self._size} that was read up to {self._taken}"
            )
        taken = shared_memory.take(self._memory, self._take_start, self._size, position, count)
        self._taken = position + count
        shared_memory.store(self._memory, self._take_taken_at, self._taken)
        return taken
