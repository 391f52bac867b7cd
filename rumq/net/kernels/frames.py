"""Kernel: decode the WebSocket frames of a client, independent of how they arrive in pieces. RFC 6455, 5.

A payload is shorter than its frame, so it moves to the front of the same buffer."""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memmove

CONTINUATION = cython.declare(cython.uint, 0)
TEXT = cython.declare(cython.uint, 1)
BINARY = cython.declare(cython.uint, 2)
CLOSE = cython.declare(cython.uint, 8)
PING = cython.declare(cython.uint, 9)
PONG = cython.declare(cython.uint, 10)
CONTROL_BYTES_MAX = cython.declare(cython.uint, 125)
NO_CODE = cython.declare(cython.uint, 1005)


@cython.cfunc
@cython.inline
def unmasked(
    data: cython.uchar[::1],
    out: cython.Py_ssize_t,
    pos: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    mask: bytearray,
    phase: cython.Py_ssize_t,
) -> cython.void:
    """Move `n` bytes from `pos` down to `out`, without the mask; `phase`: which of its bytes is the next."""
    i: cython.Py_ssize_t
    if n == 0:
        return
    if cython.compiled:
        key = cython.declare(cython.uchar[8])
        word: cython.ulonglong = 0
        pattern: cython.ulonglong = 0
        p: cython.p_uchar = cython.address(data[out])
        memmove(p, cython.address(data[pos]), n)
        for i in range(8):
            key[i] = mask[(phase + i) & 3]
        memcpy(cython.address(pattern), cython.address(key[0]), 8)
        i = 0
        while i + 8 <= n:
            memcpy(cython.address(word), p + i, 8)
            word ^= pattern
            memcpy(p + i, cython.address(word), 8)
            i += 8
        while i < n:
            p[i] ^= key[i & 7]
            i += 1
    else:
        turned = bytes(mask[phase:] + mask[:phase])
        repeated = int.from_bytes((turned * (n // 4 + 1))[:n], "big")
        data[out : out + n] = (int.from_bytes(data[pos : pos + n], "big") ^ repeated).to_bytes(n, "big")


@cython.cclass
class Incoming:
    """What one client sends. ping: what the latest PING that waits for its answer holds; closed: the code of CLOSE,
    0 before it; fault: with which code the connection is to be failed, 0 if it is not, and why"""

    ping = cython.declare(object, visibility="public")
    closed = cython.declare(cython.uint, visibility="readonly")
    fault = cython.declare(cython.uint, visibility="readonly")
    why = cython.declare(object, visibility="readonly")
    frame_bytes_max = cython.declare(cython.ulonglong)
    left = cython.declare(cython.ulonglong)
    phase = cython.declare(cython.Py_ssize_t)
    opcode = cython.declare(cython.uint)
    is_final = cython.declare(cython.bint)
    in_payload = cython.declare(cython.bint)
    in_message = cython.declare(cython.bint)
    head = cython.declare(bytearray)
    mask = cython.declare(bytearray)
    control = cython.declare(object)

    def __init__(self, frame_bytes_max: int) -> None:
        self.ping = None
        self.closed = 0
        self.fault = 0
        self.why = ""
        self.frame_bytes_max = frame_bytes_max
        self.left = 0
        self.phase = 0
        self.opcode = 0
        self.is_final = True
        self.in_payload = False
        self.in_message = False
        self.head = bytearray()
        self.mask = bytearray(4)
        self.control = None

    def state(self) -> tuple[object, ...]:
        """Where it stands, for `restore` in another process."""
        return (
            self.left, self.phase, self.opcode, self.is_final, self.in_payload, self.in_message, bytes(self.head),
            bytes(self.mask), None if self.control is None else bytes(self.control), self.ping, self.closed,
        )  # fmt: skip

    def restore(self, state: object) -> None:
        (
            self.left, self.phase, self.opcode, self.is_final, self.in_payload, self.in_message, head, mask, control,
            self.ping, self.closed,
        ) = state  # fmt: skip
        self.head = bytearray(head)
        self.mask = bytearray(mask)
        self.control = None if control is None else bytearray(control)

    def take(self, data: cython.uchar[::1], end: cython.Py_ssize_t) -> int:
        """Take `data[:end]`; how many bytes of messages there were: they are at its front now."""
        pos: cython.Py_ssize_t = 0
        out: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t
        while pos < end and not self.fault and not self.closed:
            if not self.in_payload:
                pos = self._header(data, pos, end)
                if not self.in_payload:
                    continue
            n = end - pos
            if cython.cast(cython.ulonglong, n) > self.left:
                n = cython.cast(cython.Py_ssize_t, self.left)
            if self.control is None:
                unmasked(data, out, pos, n, self.mask, self.phase)
                out += n
            else:
                # What is unmasked where it lies, behind all that has been taken.
                unmasked(data, pos, pos, n, self.mask, self.phase)
                self.control += bytes(data[pos : pos + n])
            pos += n
            self.phase = (self.phase + n) & 3
            self.left -= n
            if self.left == 0:
                self.in_payload = False
                if self.control is not None:
                    self._controlled()
        return out

    @cython.cfunc
    def _header(self, data: cython.uchar[::1], pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Take what there is of a frame's header; returns where it ends."""
        needed: cython.Py_ssize_t = self._needed()
        while pos < end:
            self.head.append(data[pos])
            pos += 1
            if len(self.head) == 2 and not self._begins_well():
                return pos
            needed = self._needed()
            if len(self.head) == needed:
                self._begin()
                if self.in_payload and self.left == 0:
                    # An empty frame is over here, for nothing behind it need come.
                    self.in_payload = False
                    if self.control is not None:
                        self._controlled()
                break
        return pos

    @cython.cfunc
    def _needed(self) -> cython.Py_ssize_t:
        length: cython.uint
        if len(self.head) < 2:
            return 2
        length = self.head[1] & 0x7F
        return 14 if length == 127 else 8 if length == 126 else 6

    @cython.cfunc
    def _begins_well(self) -> cython.bint:
        first: cython.uint = self.head[0]
        second: cython.uint = self.head[1]
        opcode: cython.uint = first & 15
        if first & 0x70:
            self._fail(1002, "a WebSocket frame with reserved bits, and no extension was agreed upon")
        elif not second & 0x80:
            self._fail(1002, "a WebSocket frame without a mask")
        elif opcode >= 8:
            if opcode > 10:
                self._fail(1002, "a WebSocket frame of no known kind (%d)" % opcode)
            elif not first & 0x80 or (second & 0x7F) > CONTROL_BYTES_MAX:
                self._fail(1002, "a WebSocket control frame that is too long or in pieces")
        elif opcode == TEXT:
            self._fail(1003, "a WebSocket text frame: MQTT goes in binary ones")
        elif opcode > BINARY:
            self._fail(1002, "a WebSocket frame of no known kind (%d)" % opcode)
        elif (opcode == CONTINUATION) != self.in_message:
            self._fail(1002, "WebSocket frames of a message out of order")
        return self.fault == 0

    @cython.cfunc
    def _begin(self) -> cython.void:
        size: cython.Py_ssize_t = len(self.head)
        length: cython.ulonglong = self.head[1] & 0x7F
        i: cython.Py_ssize_t
        if length >= 126:
            shortest: cython.ulonglong = 126 if length == 126 else 65536
            length = 0
            for i in range(2, size - 4):
                length = length << 8 | self.head[i]
            if length < shortest or length >> 63:
                self._fail(1002, "a WebSocket frame whose length is written in a wrong way")
                return
        if length > self.frame_bytes_max:
            self._fail(1009, "a WebSocket frame of %d bytes, the limit is %d" % (length, self.frame_bytes_max))
            return
        self.opcode = self.head[0] & 15
        self.is_final = self.head[0] & 0x80 != 0
        for i in range(4):
            self.mask[i] = self.head[size - 4 + i]
        self.head.clear()
        self.phase = 0
        self.left = length
        self.in_payload = True
        if self.opcode >= 8:
            self.control = bytearray()
        else:
            self.in_message = not self.is_final

    @cython.cfunc
    def _controlled(self) -> cython.void:
        """A control frame is whole."""
        content: bytes = bytes(self.control)
        self.control = None
        if self.opcode == PING:
            self.ping = content  # an answer to the latest is enough. 5.5.3
        elif self.opcode == CLOSE:
            self._close(content)

    @cython.cfunc
    def _close(self, content: bytes) -> cython.void:
        code: cython.uint
        if not content:
            self.closed = NO_CODE
            return
        if len(content) == 1:
            self._fail(1002, "a WebSocket CLOSE with half a code")
            return
        code = content[0] << 8 | content[1]
        # 7.4: codes that may be sent.
        if not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):
            self._fail(1002, "a WebSocket CLOSE with the code %d" % code)
            return
        try:
            content[2:].decode()
        except UnicodeDecodeError:
            self._fail(1007, "a WebSocket CLOSE whose reason is no UTF-8")
            return
        self.closed = code

    @cython.cfunc
    def _fail(self, code: cython.uint, why: str) -> cython.void:
        self.fault = code
        self.why = why


def header(size: int) -> bytes:
    """Of a binary frame with so many bytes, from a server: whole, and without a mask. 5.2"""
    if size < 126:
        return bytes((0x82, size))
    if size < 65536:
        return bytes((0x82, 126, size >> 8, size & 255))
    return b"\x82\x7f" + size.to_bytes(8, "big")


def control(opcode: int, content: bytes) -> bytes:
    """A control frame from a server, of at most 125 bytes."""
    return bytes((0x80 | opcode, len(content))) + content
