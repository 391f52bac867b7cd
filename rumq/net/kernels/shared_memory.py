"""Kernel: bytes copied into and out of a ring in memory that two processes share, and the number that frees its space.

A position counts bytes since the ring was made; it lies at its rest by the ring's size, and bytes go on at the ring's
begin behind its end. Knows neither frames nor whether there is room: the caller has checked both."""

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        Py_buffer,
        PyBUF_SIMPLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.rumq.mqtt.kernels.buffers import octets
    from cython.cimports.rumq.net.kernels.shared_memory import load_acquire, store_release

# Whether `store` comes behind what was done to memory before it, as the other process sees it. The interpreter alone
# does not promise that.
IS_ORDERED = bool(cython.compiled)


def put(shared: object, start: cython.Py_ssize_t, size: cython.Py_ssize_t, position: int, parts: tuple) -> None:
    """Copy buffers one after the other into the ring of `size` bytes at `shared[start:]`, from a position on."""
    at: cython.Py_ssize_t = position % size
    count: cython.Py_ssize_t
    first: cython.Py_ssize_t
    if cython.compiled:
        view = cython.declare(Py_buffer)
        ring: cython.p_uchar = octets(shared) + start
        source: cython.p_uchar
        for part in parts:
            PyObject_GetBuffer(part, cython.address(view), PyBUF_SIMPLE)
            source, count = cython.cast(cython.p_uchar, view.buf), view.len
            first = min(count, size - at)
            memcpy(ring + at, source, first)
            memcpy(ring, source + first, count - first)
            PyBuffer_Release(cython.address(view))
            at = at + count if at + count < size else at + count - size
        return
    with memoryview(shared)[start : start + size] as whole:
        for part in parts:
            with memoryview(part) as plain, plain.cast("B") as data:
                first = min(len(data), size - at)
                whole[at : at + first] = data[:first]
                whole[: len(data) - first] = data[first:]
                at = (at + len(data)) % size


def take(
    shared: object, start: cython.Py_ssize_t, size: cython.Py_ssize_t, position: int, count: cython.Py_ssize_t
) -> bytearray:
    """Copy `count` bytes out of the ring of `size` bytes at `shared[start:]`, from a position on."""
    at: cython.Py_ssize_t = position % size
    first: cython.Py_ssize_t = min(count, size - at)
    if cython.compiled:
        taken: bytearray = PyByteArray_FromStringAndSize(cython.NULL, count)
        ring: cython.p_uchar = octets(shared) + start
        memcpy(octets(taken), ring + at, first)
        memcpy(octets(taken) + first, ring, count - first)
        return taken
    with memoryview(shared)[start : start + size] as whole:
        return bytearray(whole[at : at + first]) + whole[: count - first]


def load(shared: object, at: cython.Py_ssize_t) -> int:
    """The number of 8 bytes at `shared[at:]`. at: a multiple of 8"""
    if cython.compiled:
        return load_acquire(cython.cast(cython.pointer(cython.ulonglong), octets(shared) + at))
    with memoryview(shared)[at : at + 8] as place, place.cast("Q") as number:
        return number[0]


def store(shared: object, at: cython.Py_ssize_t, value: cython.ulonglong) -> None:
    """Write it, behind all that was done to memory before."""
    if cython.compiled:
        store_release(cython.cast(cython.pointer(cython.ulonglong), octets(shared) + at), value)
        return
    with memoryview(shared)[at : at + 8] as place, place.cast("Q") as number:
        number[0] = value
