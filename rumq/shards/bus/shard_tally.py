"""What a shard counts and measures of itself, as it tells it to shard 0 (`Tally` of `rumq.shards.bus.messages`)."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """Counters of a shard since its start; docs/reference/sys.md explains each number."""

    packets_in: int = 0
    packets_out: int = 0
    published: int = 0
    delivered: int = 0
    dropped: int = 0
    refused: int = 0
    published_bytes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    connections: int = 0
    sockets: int = 0
    expired: int = 0
    handed_over: int = 0
    taken_over: int = 0


class PartitionTally(msgspec.Struct, frozen=True, array_like=True):
    stream: str
    number: int
    first_lsn: int
    next_lsn: int
    committed_lsn: int


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """Gauges of a shard. partitions: those that it owns"""

    connected: int = 0
    sessions: int = 0
    subscriptions: int = 0
    shared: int = 0
    retained: int = 0
    topics: int = 0
    log_bytes: int = 0
    partitions: list[PartitionTally] = []
