"""How many connections this process has file descriptors for, once the log has what it needs. getrlimit(2).

Knows no socket. The log opens and closes files while clients come and go: it must never find none left."""

from __future__ import annotations

import os
import resource

RESERVED = 32  # and FOR_PARTITION each: a segment, one being read, an index, a manifest being replaced
FOR_PARTITION = 4


def raise_limit() -> int:
    """Have as many descriptors as this process may; returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft  # some systems allow less than they say
    return hard


def room_for_connections(limit: int, partitions: int) -> int:
    """How many sockets may be open beside what is open now and what the log may need; at least 1."""
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    taken = len(os.listdir("/proc/self/fd"))
    return max(1, limit - taken - RESERVED - FOR_PARTITION * partitions)
