"""What a process has written to its connections leaves before it ends, within a bounded time.

A connection to another node with TLS is two in this process: what is written to one end of a pair is encrypted at the
other end (`rumq.cluster.connections.node_tls`), and would be lost with the process. Handles nothing that comes in."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.net.transport.relay import ShardEnd


def send_last_words(pump: Pump, seconds_max: float, clock: Callable[[], float] = time.monotonic) -> None:
    """Send what waits, as far as the other ends take it in time."""
    until = clock() + seconds_max
    while True:
        moved = sum([forward(pump, each) for each in connections(pump)])
        waiting = [each for each in connections(pump) if each.waits()]
        left = until - clock()
        if left <= 0 or not (moved or waiting):
            return
        if not moved:
            select.select([], [each.fd for each in waiting], [], left)


def connections(pump: Pump) -> list[Connection]:
    return list(pump.connections.values())


def forward(pump: Pump, connection: Connection) -> int:
    """Send what a connection has, and take what was written into its other end. returns: how many bytes were moved"""
    before = connection.bytes_in + connection.bytes_out
    if isinstance(connection.link, ShardEnd):
        pump.read_out(connection)
    if connection.waits() and not connection.closing:
        connection.blocked = False
        connection.flush()
    return connection.bytes_in + connection.bytes_out - before
