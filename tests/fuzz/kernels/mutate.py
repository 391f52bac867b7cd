"""Kernel: byte strings that are nearly valid, by the million. The same numbers give the same bytes, compiled or not.

A piece of a corpus is an MQTT packet or any other bytes. Most mutations are of what is inside a packet, whose remaining
length is then put right, so that they come further than to the first check. Knows no meaning of any byte."""

from itertools import accumulate

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy, memmove

# How many bytes of an input at most.
ROOM = cython.declare(cython.Py_ssize_t, 1 << 16)
# Of what grows by chance.
GROWN_BYTES_MAX = cython.declare(cython.Py_ssize_t, 4096)
ODDEST = b"\x00\x01\x02\x03\x04\x05\x7e\x7f\x80\x81\xfe\xff\x23\x2b\x2f\x24"


@cython.cclass
class Mutator:
    """Draws inputs from a corpus.

    pieces: valid ones, each of at most 16 KiB
    packets: they are MQTT packets, whose remaining length is right again after most mutations
    """

    state = cython.declare(cython.ulonglong)
    count = cython.declare(cython.Py_ssize_t)
    packets = cython.declare(cython.bint)
    known = cython.declare(cython.const[cython.uchar][::1])
    odd = cython.declare(cython.const[cython.uchar][::1])
    starts = cython.declare(cython.longlong[::1])
    out = cython.declare(cython.uchar[::1])

    def __init__(self, pieces: list, packets: bool) -> None:
        starts = [0, *accumulate(map(len, pieces))]
        if not pieces or max(map(len, pieces)) > 1 << 14:
            raise ValueError("a corpus has pieces, of at most 16 KiB each")
        self.count = len(pieces)
        self.packets = packets
        self.known = b"".join(pieces)
        self.odd = ODDEST
        self.starts = memoryview(bytearray(b"".join([at.to_bytes(8, "little") for at in starts]))).cast("q")
        self.out = bytearray(ROOM)
        self.state = 1

    def inputs(self, count: int, seed: int, pieces_max: int, spared: int = 1) -> list:
        """`count` byte strings, each of 1 to `pieces_max` pieces; spared: of 4 pieces, how many stay as they are."""
        found: list = []
        end: cython.Py_ssize_t
        start: cython.Py_ssize_t
        _n: cython.Py_ssize_t
        most: cython.Py_ssize_t = pieces_max
        kept: cython.Py_ssize_t = spared
        self.state = (seed & 0xFFFFFFFFFFFFFFFF) or 1
        for _ in range(count):
            end = 0
            # Pieces are spared, for what is behind one is looked at only if it is good.
            for _n in range(1 + self.below(most)):
                if end > ROOM // 2:
                    break
                start = end
                end = self.copy_of(self.below(self.count), start)
                if most > 1 and self.below(4) < kept:
                    continue
                if self.packets and self.below(4):
                    end = self.change_inside(start, end)
                else:
                    end = self.change(start, end)
            if self.below(16) == 0:
                end = self.change(0, end)
            if cython.compiled:
                found.append(PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(self.out[0])), end))
            else:
                found.append(bytes(self.out[:end]))
        return found

    @cython.cfunc
    def below(self, limit: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """0 to limit - 1; 0 where there is no such number. xorshift64*, masked so that plain Python says the same."""
        x: cython.ulonglong = self.state
        if limit <= 1:
            return 0
        x ^= x >> 12
        x ^= (x << 25) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 27
        self.state = x
        x = ((x * 2685821657736338717) & 0xFFFFFFFFFFFFFFFF) >> 16
        return cython.cast(cython.Py_ssize_t, x % cython.cast(cython.ulonglong, limit))

    @cython.cfunc
    def copy_of(self, piece: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Put a piece to `at`; returns where it ends."""
        start: cython.Py_ssize_t = self.starts[piece]
        size: cython.Py_ssize_t = self.starts[piece + 1] - start
        self.take(start, size, at)
        return at + size

    @cython.cfunc
    def take(self, start: cython.Py_ssize_t, size: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.void:
        if size <= 0:
            return
        if cython.compiled:
            memcpy(cython.address(self.out[at]), cython.address(self.known[start]), size)
        else:
            self.out[at : at + size] = self.known[start : start + size]

    @cython.cfunc
    def move(self, start: cython.Py_ssize_t, to: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        if size <= 0:
            return
        if cython.compiled:
            memmove(cython.address(self.out[to]), cython.address(self.out[start]), size)
        else:
            self.out[to : to + size] = bytes(self.out[start : start + size])

    @cython.cfunc
    def change_inside(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Change what stands behind the fixed header of a packet, and have it say how much there is then."""
        body: cython.Py_ssize_t = start + 1
        while body < end and body < start + 4 and self.out[body] & 0x80:
            body += 1
        body += 1
        if body > end:
            return end
        end = self.change(body, end)
        size: cython.Py_ssize_t = end - body
        width: cython.Py_ssize_t = 1 if size < 128 else 2 if size < 16384 else 3
        self.move(body, start + 1 + width, size)
        body = start + 1
        end = body + width + size
        while width > 1:
            self.out[body] = (size & 127) | 128
            size >>= 7
            body += 1
            width -= 1
        self.out[body] = size & 127
        return end

    @cython.cfunc
    def change(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """One to four changes of the bytes there; returns where they end then."""
        n: cython.Py_ssize_t = 1
        if self.below(2):
            n += self.below(4)
        while n:
            n -= 1
            end = self.change_once(start, end)
        return end

    @cython.cfunc
    def change_once(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        how: cython.Py_ssize_t = self.below(13)
        at: cython.Py_ssize_t = start + self.below(end - start)
        size: cython.Py_ssize_t
        i: cython.Py_ssize_t
        piece: cython.Py_ssize_t
        roomy: cython.bint = end - start < GROWN_BYTES_MAX and end < ROOM // 2
        if end == start:
            self.out[end] = self.below(256)
            return end + 1
        if how <= 1:
            self.out[at] = self.out[at] ^ (1 << self.below(8))
        elif how == 2:
            self.out[at] = self.below(256)
        elif how == 3:
            self.out[at] = self.odd[self.below(16)]
        elif how <= 5:  # a length that is a little wrong
            self.out[at] = (self.out[at] + 1 + self.below(4) * 63) & 255
        elif how == 6:  # two bytes: a length, often
            self.out[at] = self.odd[self.below(16)]
            if at + 1 < end:
                self.out[at + 1] = self.odd[self.below(16)]
        elif how == 7:  # a length as long as it gets
            size = 1 + self.below(5)
            for i in range(at, min(at + size, end)):
                self.out[i] = 255
        elif how == 8:
            end = at
        elif how == 9:
            size = min(1 + self.below(self.below(32)), end - at)
            self.move(at + size, at, end - at - size)
            end -= size
        elif how == 10:
            if roomy:
                size = 1 + self.below(8)
                self.move(at, at + size, end - at)
                for i in range(at, at + size):
                    self.out[i] = self.below(256)
                end += size
        elif how == 11:  # twice
            if roomy:
                size = 1 + self.below(end - at)
                self.move(at, at + size, end - at)
                end += size
        else:  # bytes of another one
            piece = self.below(self.count)
            i = self.starts[piece]
            size = self.starts[piece + 1] - i
            if size:
                piece = self.below(size)
                i += piece
                size = 1 + self.below(size - piece)
                if self.below(2):
                    size = min(size, end - at)
                    self.take(i, size, at)
                elif roomy:
                    self.move(at, at + size, end - at)
                    self.take(i, size, at)
                    end += size
        return end
