"""Kernel: accept, receive and send on a descriptor that does not block, accept4(2), read(2), writev(2).

Neither a socket object nor an exception is between a turn and the system call: a failure is a negative errno. As no
call waits, the interpreter's lock is kept: except for many bytes, whose copying the log's writers need not wait for."""

import os
import socket

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        Py_buffer,
        PyBUF_SIMPLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
    from cython.cimports.libc.errno import errno
    from cython.cimports.posix.uio import iovec, writev
    from cython.cimports.posix.unistd import read, write
    from cython.cimports.rumq.mqtt.kernels.buffers import octets
    from cython.cimports.rumq.net.kernels.sockets import (
        AF_INET,
        AF_INET6,
        NI_NUMERICHOST,
        NI_NUMERICSERV,
        SOCK_CLOEXEC,
        SOCK_NONBLOCK,
        accept4,
        getnameinfo,
        sockaddr,
        sockaddr_storage,
        socklen_t,
    )

BULK = cython.declare(cython.Py_ssize_t, 1 << 11)
BUFFERS_MAX = 64  # of one system call
BULK_BYTES = 1 << 11  # above so many the interpreter's lock is released: `BULK` for the compiler


def accept(listening: cython.int) -> tuple:
    """Accept a connection, which does not block and is not inherited.

    returns: (descriptor, host, port), as `socket.accept` writes them, or "" and 0 of a Unix socket;
    (negative errno, "", 0)"""
    if cython.compiled:
        at = cython.declare(sockaddr_storage)
        size: socklen_t = cython.sizeof(sockaddr_storage)
        host = cython.declare(cython.char[64])
        port = cython.declare(cython.char[8])
        part = cython.cast(cython.p_uchar, cython.address(at))
        fd: cython.int = accept4(
            listening, cython.cast(cython.pointer(sockaddr), cython.address(at)), cython.address(size),
            SOCK_NONBLOCK | SOCK_CLOEXEC,
        )  # fmt: skip
        if fd < 0:
            return -errno, "", 0
        if at.ss_family == AF_INET:  # as what follows would, at a fifth of the cost
            return fd, f"{part[4]}.{part[5]}.{part[6]}.{part[7]}", part[2] << 8 | part[3]
        if at.ss_family != AF_INET6 or getnameinfo(
            cython.cast(cython.pointer(sockaddr), cython.address(at)), size, host, 64, port, 8,
            NI_NUMERICHOST | NI_NUMERICSERV,
        ):  # fmt: skip
            return fd, "", 0
        name: bytes = cython.cast(cython.p_char, host)
        number: bytes = cython.cast(cython.p_char, port)
        return fd, name.decode(), int(number)
    try:
        with socket.socket(fileno=os.dup(listening)) as listener:
            accepted, address = listener.accept()
    except OSError as fault:
        return -fault.errno, "", 0
    accepted.setblocking(False)
    host, port = address[:2] if isinstance(address, tuple) else ("", 0)
    return accepted.detach(), host, port


def receive(
    fd: cython.int, buffer: object, at: cython.Py_ssize_t, bulk: cython.bint, most: cython.Py_ssize_t = 1 << 30
) -> int:
    """Receive into `buffer[at:]`. bulk: much is expected; most: so many bytes, whatever room there is

    returns: how many bytes, 0 at the end of the stream, or a negative errno"""
    n: cython.Py_ssize_t
    room: cython.Py_ssize_t = min(len(buffer) - at, most)
    if cython.compiled:
        start: cython.p_uchar = octets(buffer)
        if bulk:
            with cython.nogil:
                n = read(fd, start + at, room)
        else:
            n = read(fd, start + at, room)
        return n if n >= 0 else -errno
    try:
        with memoryview(buffer) as whole:
            return os.readv(fd, [whole[at : at + room]])
    except OSError as fault:
        return -fault.errno


def buffer_of(size: cython.Py_ssize_t) -> bytearray:
    """A buffer to receive into. Compiled, it is not filled with zeros: who takes it fills all of it."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)


def send_one(fd: cython.int, data: object) -> int:
    """As `send`, of one piece."""
    n: cython.Py_ssize_t
    if cython.compiled:
        view = cython.declare(Py_buffer)
        PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
        if view.len > BULK:
            with cython.nogil:
                n = write(fd, view.buf, view.len)
        else:
            n = write(fd, view.buf, view.len)
        if n < 0:
            n = -errno
        PyBuffer_Release(cython.address(view))
        return n
    try:
        return os.write(fd, data)  # type: ignore[arg-type]
    except OSError as fault:
        return -fault.errno


def send(fd: cython.int, queue: list) -> int:
    """Send what waits, (bytes, owner) each, as far as the socket and one system call take it.

    returns: how many bytes, or a negative errno"""
    n: cython.Py_ssize_t
    if cython.compiled:
        views = cython.declare(Py_buffer[64])
        vectors = cython.declare(iovec[64])
        held: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        item: tuple
        try:
            for i in range(min(len(queue), 64)):
                item = queue[i]
                PyObject_GetBuffer(item[0], cython.address(views[i]), PyBUF_SIMPLE)
                vectors[i].iov_base = views[i].buf
                vectors[i].iov_len = views[i].len
                size += views[i].len
                held += 1
            if size > BULK:
                with cython.nogil:
                    n = writev(fd, vectors, held)
            else:
                n = writev(fd, vectors, held)
            return n if n >= 0 else -errno
        finally:
            for i in range(held):
                PyBuffer_Release(cython.address(views[i]))
    try:
        return os.writev(fd, [data for data, _ in queue[:64]])
    except OSError as fault:
        return -fault.errno
