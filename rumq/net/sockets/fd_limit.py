"""The limit of file descriptors, and the number of connections that leaves enough of them to the log. getrlimit(2)

The log opens and closes files while clients come and go: it must never run out."""

from __future__ import annotations

import os
import resource

RESERVED = 32  # and FOR_PARTITION each: a segment, one being read, an index, a manifest being replaced
FOR_PARTITION = 4


def raise_limit() -> int:
    """Raise the soft limit to the hard one. returns: the limit now"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft  # some systems allow less than their hard limit
    return hard


def room_for_connections(limit: int, partitions: int) -> int:
    """How many sockets may be open beside what is open now and what the log may need; at least 1."""
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    taken = len(os.listdir("/proc/self/fd"))
    return max(1, limit - taken - RESERVED - FOR_PARTITION * partitions)
