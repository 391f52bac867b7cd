"""Kernel: the time of day and the monotonic clock, clock_gettime(2), without an object for each reading."""

import time

import cython

if cython.compiled:
    from cython.cimports.posix.time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


def now_us() -> int:
    """µs since 1970."""
    if not cython.compiled:
        return time.time_ns() // 1000
    at = cython.declare(timespec)
    clock_gettime(CLOCK_REALTIME, cython.address(at))
    return cython.cast(cython.longlong, at.tv_sec) * 1_000_000 + at.tv_nsec // 1000


def monotonic() -> float:
    """Seconds; the same clock as `time.monotonic`."""
    if not cython.compiled:
        return time.monotonic()
    at = cython.declare(timespec)
    clock_gettime(CLOCK_MONOTONIC, cython.address(at))
    return at.tv_sec + at.tv_nsec * 1e-9
