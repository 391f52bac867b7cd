"""Kernel: writes to a file at a position, pwrite(2), and whether the thread had to wait for that.

A thread waits when it gives up its core of its own accord, getrusage(2): one that was preempted did not wait for the
disk, however much time has passed. Uncompiled it is the same in Python."""

from __future__ import annotations

import os
import resource

import cython

if cython.compiled:
    from cython.cimports.commitlog.kernels.positioned_write import RUSAGE_THREAD, getrusage, pwrite, rusage
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.libc.errno import EINTR, EIO, errno
else:
    from errno import EIO

WAITED = 1 << 16  # a bit beyond every errno


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_all(
    fd: cython.int, data: cython.pointer[cython.const[cython.char]], size: cython.Py_ssize_t, position: cython.longlong
) -> cython.int:
    """returns: 0, or the errno of the call that failed"""
    at: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    while at < size:
        n = pwrite(fd, data + at, size - at, position + at)
        if n > 0:
            at += n
        elif n == 0:
            return EIO
        elif errno != EINTR:
            return errno
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def waits_so_far() -> cython.long:
    """How often this thread has given up its core to wait."""
    usage = cython.declare(rusage)
    return usage.ru_nvcsw if getrusage(RUSAGE_THREAD, cython.address(usage)) == 0 else 0


def write_now(fd: cython.int, data: object, size: cython.Py_ssize_t, position: cython.longlong) -> cython.int:
    """Write the first `size` bytes of `data`, without the interpreter's lock.

    returns: 0, or the errno of the call that failed; with `WAITED` in it if the thread had to wait"""
    if not cython.compiled:
        return write_python(fd, memoryview(data)[:size], position)  # type: ignore[arg-type]
    view = cython.declare(Py_buffer)
    number: cython.int
    waits: cython.long
    PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
    with cython.nogil:
        waits = waits_so_far()
        number = write_all(fd, cython.cast(cython.pointer[cython.const[cython.char]], view.buf), size, position)
        if waits_so_far() != waits:
            number |= 65536
    PyBuffer_Release(cython.address(view))
    return number


def write_python(fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
    """As `write_now`, uncompiled."""
    waits, number, at = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw, 0, 0
    with memoryview(data) as left:
        try:
            while at < len(left):
                at += os.pwrite(fd, left[at:], position + at)
        except OSError as fault:
            number = fault.errno or EIO
    has_waited = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw != waits
    return number | WAITED if has_waited else number
