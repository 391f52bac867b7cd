"""Kernel: a thread that writes to a file and syncs it, pwrite(2) and fdatasync(2), without the interpreter's lock.

A thread of Python that wakes up waits for the lock, and whoever has it is made to give it up: for a message that comes
alone that is most of its time. This one runs no Python: its job is in a struct, an eventfd wakes it, another one tells
its end. Uncompiled it is a thread like any other. docs/decisions/0027-a-sync-thread-without-the-lock.md."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.commitlog.kernels.flush_calls import (
        SIG_BLOCK,
        FlushJob,
        PyThread_start_new_thread,
        fdatasync,
        pthread_sigmask,
        read,
        sigfillset,
        sigset_t,
        write,
    )
    from cython.cimports.commitlog.kernels.positioned_write import write_all
    from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.libc.errno import EAGAIN, EINTR, EIO, errno
    from cython.cimports.libc.stdlib import calloc, free
else:
    from errno import EIO

RUNS = cython.declare(cython.int, -1)  # a job that has not ended


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def flush(job: cython.pointer[FlushJob]) -> cython.int:
    """Write all of a job, then sync. returns: 0, or the errno of the call that failed"""
    number: cython.int = write_all(job.fd, job.data, job.size, job.position)
    if number:
        return number
    while fdatasync(job.fd):
        if errno != EINTR:
            return errno
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def serve(argument: cython.p_void) -> cython.void:
    """The thread: a job each time that the eventfd is written to, until it is to stop."""
    job: cython.pointer[FlushJob] = cython.cast(cython.pointer[FlushJob], argument)
    mask = cython.declare(sigset_t)
    number: cython.ulonglong = 0
    one: cython.ulonglong = 1
    stopped_fd: cython.int = job.stopped_fd
    # Signals are for the loop.
    sigfillset(cython.address(mask))
    pthread_sigmask(SIG_BLOCK, cython.address(mask), cython.NULL)
    while True:
        if read(job.jobs_fd, cython.address(number), 8) != 8:
            continue
        if job.state == RUNS:
            job.state = flush(job)  # one word says that it has ended, and how
            write(job.ended_fd, cython.address(one), 8)
        if job.stops:
            break
    write(stopped_fd, cython.address(one), 8)  # from here on the job may be gone


def serve_python(thread: FlushThread, ended_fd: int) -> None:
    """As `serve`, uncompiled."""
    while (job := thread.jobs.get()) is not None:
        fd, data, position = job
        try:
            with data as left:
                at = 0
                while at < len(left):
                    at += os.pwrite(fd, left[at:], position + at)
            os.fdatasync(fd)
            thread.result = 0
        except OSError as fault:
            thread.result = fault.errno or EIO
        os.eventfd_write(ended_fd, 1)


def reset(ended_fd: cython.int) -> None:
    """Have an eventfd that does not block be readable no more, until it is written to again."""
    if cython.compiled:
        number: cython.ulonglong = 0
        read(ended_fd, cython.address(number), 8)
    else:
        try:
            os.eventfd_read(ended_fd)
        except BlockingIOError:
            pass


@cython.cclass
class FlushThread:
    """One job at a time: `start`, then `maybe_end` each time that the eventfd is readable, until it has ended.

    done: what the caller is to call then, for the caller itself
    A thread that is not stopped lives as long as the process."""

    def __init__(self, ended_fd: cython.int) -> None:
        """ended_fd: an eventfd that is written to when a job has ended. Several threads may have the same one

        raises: OSError, without two descriptors or a thread"""
        self.result = 0
        self.done: Any = None
        if cython.compiled:
            self.is_held = False
            self.job = cython.cast(cython.pointer[FlushJob], calloc(1, cython.sizeof(FlushJob)))
            if self.job == cython.NULL:
                raise MemoryError
            self.job.jobs_fd = os.eventfd(0, os.EFD_CLOEXEC)
            try:
                self.job.stopped_fd = os.eventfd(0, os.EFD_CLOEXEC)
            except OSError:
                os.close(self.job.jobs_fd)
                raise
            self.job.ended_fd = ended_fd
            if PyThread_start_new_thread(serve, self.job) == cython.cast(cython.ulong, -1):
                os.close(self.job.jobs_fd)
                os.close(self.job.stopped_fd)
                raise OSError(EAGAIN, "no further thread can be started")
        else:
            self.jobs: SimpleQueue[tuple[int, memoryview, int] | None] = SimpleQueue()
            self.thread = threading.Thread(target=serve_python, args=(self, ended_fd), daemon=True)
            self.thread.start()

    def start(self, fd: cython.int, data: object, size: cython.Py_ssize_t, position: cython.longlong) -> None:
        """Have the thread write the first `size` bytes of `data` at `position` of a file, and sync the file.

        Not before the job before it has ended. data: stays as it is until this one has"""
        if cython.compiled:
            one: cython.ulonglong = 1
            PyObject_GetBuffer(data, cython.address(self.view), PyBUF_SIMPLE)
            self.is_held = True
            self.job.fd, self.job.position = fd, position
            self.job.data = cython.cast(cython.p_const_char, self.view.buf)
            self.job.size = size
            self.job.state = RUNS
            write(self.job.jobs_fd, cython.address(one), 8)
        else:
            self.result = -1
            self.jobs.put((fd, memoryview(data)[:size], position))  # type: ignore[arg-type]

    def maybe_end(self) -> cython.int:
        """How the job ended: 0, or the errno of the call that failed, when any part may be written; -1: not yet."""
        if cython.compiled:
            if self.job != cython.NULL:
                self.result = self.job.state
            if self.result != RUNS and self.is_held:
                self.is_held = False
                PyBuffer_Release(cython.address(self.view))
        return self.result

    def stop(self) -> None:
        """End the thread, once, after its job, and wait for it. Nothing may be started afterwards."""
        if cython.compiled:
            number: cython.ulonglong = 1
            self.job.stops = True
            with cython.nogil:
                write(self.job.jobs_fd, cython.address(number), 8)
                read(self.job.stopped_fd, cython.address(number), 8)
            os.close(self.job.jobs_fd)
            os.close(self.job.stopped_fd)
            self.maybe_end()
            free(self.job)
            self.job = cython.NULL
        else:
            self.jobs.put(None)
            self.thread.join()
