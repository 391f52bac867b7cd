"""Connections get the file descriptors that the log does not need. getrlimit(2)."""

import os
import resource

from rumq.net.sockets.fd_limit import FOR_PARTITION, RESERVED, room_for_connections


def test_open_descriptors_and_those_of_the_log_are_left_out() -> None:
    """docs/guides/operating.md: the log must never run out of descriptors because clients come."""
    open_now = len(os.listdir("/proc/self/fd"))
    room = room_for_connections(10_000, partitions=8)
    assert abs(room - (10_000 - open_now - RESERVED - 8 * FOR_PARTITION)) <= 1


def test_there_is_room_for_one_connection_however_low_the_limit_is() -> None:
    assert room_for_connections(1, partitions=64) == 1


def test_without_a_limit_there_is_room_for_any_number() -> None:
    assert room_for_connections(resource.RLIM_INFINITY, partitions=64) >= 1 << 30
