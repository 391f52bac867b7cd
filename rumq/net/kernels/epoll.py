"""Kernel: an epoll set, epoll(7), whose events stay in an array of the system's: no object for each event."""

import select
from collections.abc import Callable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.exc import PyErr_CheckSignals
    from cython.cimports.libc.errno import EINTR, errno
    from cython.cimports.libc.math import ceil
    from cython.cimports.rumq.net.kernels.epoll import epoll_wait

EVENTS_MAX = 512


@cython.final
@cython.cclass
class EpollSet:
    """Its fields are typed in epoll.pxd. `fd_at(i)` and `mask_at(i)` are of the events of the last `wait`."""

    def __init__(self, poller: Callable[[], Any] = select.epoll) -> None:
        """poller: makes what has the methods of `select.epoll`; of the system's own the compiled form needs only the
        descriptor"""
        self.poller = poller()
        self.fd = self.poller.fileno() if cython.compiled and isinstance(self.poller, select.epoll) else -1
        self.found = []
        self.register, self.unregister = self.poller.register, self.poller.unregister

    def wait(self, seconds: cython.double) -> int:
        """How many descriptors are ready, at most EVENTS_MAX; waits for one up to `seconds`, in whole milliseconds.

        A signal ends the wait too, with none. raises: what the signal's handler raises; OSError"""
        n: cython.int
        if cython.compiled:
            if self.fd >= 0:
                milliseconds: cython.int = cython.cast(cython.int, ceil(min(seconds, 1e6) * 1000.0))
                with cython.nogil:
                    n = epoll_wait(self.fd, self.events, 512, milliseconds)
                if n < 0:
                    if errno != EINTR:
                        raise OSError(errno, "epoll_wait")
                    PyErr_CheckSignals()
                    return 0
                return n
        self.found = self.poller.poll(seconds, EVENTS_MAX)
        return len(self.found)

    def close(self) -> None:
        self.fd = -1  # the number may soon be another's
        self.poller.close()

    def fd_at(self, i: cython.Py_ssize_t) -> int:
        """The descriptor of an event."""
        if cython.compiled and self.fd >= 0:
            return self.events[i].data.fd
        return self.found[i][0]

    def mask_at(self, i: cython.Py_ssize_t) -> int:
        """What an event says: EPOLLIN and others."""
        if cython.compiled and self.fd >= 0:
            return self.events[i].events
        return self.found[i][1]
