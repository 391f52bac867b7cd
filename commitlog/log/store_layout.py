"""What a store is opened with: which partitions a data directory has, and how each of them is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commitlog.log.partition_types import PartitionReader
from commitlog.streams import Matches, StreamSpec

if TYPE_CHECKING:  # a broker alone knows of no tail
    from commitlog.format.known_tail import KnownTail

GENERATION = 1


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The partitions of a store, in their order: those of the streams, then `volatile`, then `internal`.

    internal: a stream for the owner's own records, beside those that topics have; internal_number: its partition of
    internal_generation
    elsewhere: (stream, index, number) -> the stand-in of a partition that another process owns, None for our own
    volatile: index -> a partition without files and topics of a stream"""

    streams: Sequence[StreamSpec]
    matches: Matches
    internal: StreamSpec | None = None
    internal_number: int = 0
    internal_generation: int = GENERATION
    elsewhere: Callable[[StreamSpec, int, int], PartitionReader | None] | None = None
    volatile: Callable[[int], PartitionReader] | None = None


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a partition is opened.

    hot_bytes_max: what is kept in memory of a partition that topics have; the internal one keeps nothing
    epoch: segments carry at least this one
    tails: by directory, what this process knows of the last segments (`recovery.recover`)"""

    now_us: int
    boot_id: bytes = bytes(16)
    random: Callable[[int], bytes] = os.urandom
    hot_bytes_max: int = 64 << 20
    direct_bytes_min: int = 1 << 16
    epoch: int = 0
    tails: Mapping[str, KnownTail] = field(default_factory=dict)
