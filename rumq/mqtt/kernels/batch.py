"""Kernel: the buffers that collect what one turn publishes to one partition.

docs/reference/log-format.md, "Row" and "Frame"."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
        PyByteArray_GET_SIZE,
        PyByteArray_Resize,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

CHUNK_UNIFORM = cython.declare(cython.uint, 32)


@cython.cclass
class Batch:
    """Rows, frames and QoS 2 tags of one turn; the buffers are used again. Its fields are typed in batch.pxd."""

    def __init__(self) -> None:
        self.rows = bytearray(32 * 256)
        self.frames = bytearray(1 << 18)
        self.tags = bytearray()
        self.refusing = False  # the partition refuses writes of clients: the decoder handles their packets
        self.full_of_retained = False  # likewise, of retained messages with a payload
        self.count = 0
        self.frames_len = 0
        self.flags = CHUNK_UNIFORM

    def grow(self, frames_more: cython.Py_ssize_t) -> None:
        """Make room for `frames_more` more bytes of frames and as many rows as there are already."""
        wanted: cython.Py_ssize_t = self.frames_len + frames_more
        if len(self.frames) < wanted:
            self.frames.extend(bytes(max(wanted - len(self.frames), len(self.frames))))
        if len(self.rows) < 64 * self.count:
            self.rows.extend(bytes(len(self.rows)))

    def put_tag(self, pid: cython.ulonglong, session: cython.ulonglong) -> None:
        """Note the packet id, and the tag of the session, of the QoS 2 message that becomes the next row."""
        row: cython.ulonglong = self.count
        tag: cython.ulonglong = row | (pid << 32) | (session << 48)
        if cython.compiled:
            size: cython.Py_ssize_t = PyByteArray_GET_SIZE(self.tags)
            PyByteArray_Resize(self.tags, size + 8)
            at: cython.p_char = PyByteArray_AS_STRING(self.tags) + size
            i: cython.int
            for i in range(8):
                at[i] = (tag >> (8 * i)) & 255
        else:
            self.tags += tag.to_bytes(8, "little")

    def take(self) -> tuple[bytearray, bytes, int, int, bytes]:
        """Give (rows, frames, count, chunk flags, tags) as buffers of their own, and start anew."""
        taken = (self.taken_rows(), self.taken_frames(), self.count, self.flags, self.taken_tags())
        self.begin()
        return taken

    def taken_rows(self) -> bytearray:
        """The rows, as a buffer of their own. `begin` starts anew."""
        if cython.compiled:
            return PyByteArray_FromStringAndSize(PyByteArray_AS_STRING(self.rows), 32 * self.count)
        return self.rows[: 32 * self.count]

    def taken_frames(self) -> bytes:
        """Likewise, the frames."""
        if cython.compiled:
            return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(self.frames), self.frames_len)
        return bytes(self.frames[: self.frames_len])

    def taken_tags(self) -> bytes:
        """Likewise, the QoS 2 tags."""
        return bytes(self.tags) if self.tags else b""

    def begin(self) -> None:
        """Forget what was taken."""
        if len(self.frames) > 1 << 22:  # one large message must not hold its size for ever
            self.frames = bytearray(1 << 18)
        self.count = 0
        self.frames_len = 0
        self.flags = CHUNK_UNIFORM
        if self.tags:
            self.tags = bytearray()
