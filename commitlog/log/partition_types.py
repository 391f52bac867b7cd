"""Interfaces of a partition for readers, appenders, and for waiting until records are committed.

Implemented by `Partition`, `VolatilePartition`, and in rumq.shards.bus by `RemotePartition` (of another owner shard)
and `PublishSender` (records on their way to that shard)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from commitlog.chunk import Buffer, Chunk, Gap
from commitlog.errors import LogFailure
from commitlog.streams import StreamSpec


@dataclass(frozen=True, slots=True)
class PartitionId:
    """index: among all partitions of the store; number: among those of its stream's generation"""

    spec: StreamSpec
    index: int
    number: int
    generation: int = 1


class Runnable(Protocol):
    """A read or search for a thread that may wait."""

    def run(self) -> list[Chunk | Gap]: ...


class NumberIndex(Protocol):
    """name -> number"""

    def get(self, name: bytes, /) -> int | None: ...


class AckSource(Protocol):
    """Counts records: those below `next_lsn` may be acknowledged once `committed_lsn` has reached it."""

    @property
    def index(self) -> int: ...
    @property
    def next_lsn(self) -> int: ...
    @property
    def committed_lsn(self) -> int: ...
    @property
    def pending_bytes(self) -> int: ...
    def uncommitted_tags(self) -> Iterator[tuple[int, int]]: ...


class NamesOfPublishers(Protocol):
    """Client ids by publisher number."""

    def get(self, number: int, default: bytes, /) -> bytes: ...


class PartitionReader(Protocol):
    """A partition of this shard or of another one. is_mirrored: another shard owns it; is_volatile: it has no files"""

    is_mirrored: bool
    is_volatile: bool
    spec: StreamSpec
    index: int
    number: int
    generation: int
    topic_names: list[bytes]

    @property
    def stream(self) -> str: ...
    @property
    def publisher_names(self) -> NamesOfPublishers: ...
    @property
    def topic_ids(self) -> NumberIndex: ...
    @property
    def first_lsn(self) -> int: ...
    @property
    def next_lsn(self) -> int: ...
    @property
    def committed_lsn(self) -> int: ...
    @property
    def offline(self) -> LogFailure | None: ...
    @property
    def ack_source(self) -> AckSource: ...
    def read(self, lsn: int, bytes_max: int = 1) -> list[Chunk | Gap]: ...
    def add_topic(self, name: bytes) -> int: ...
    def add_publisher(self, client_id: str) -> int: ...
    def release_publisher(self, number: int) -> None: ...
    def known_publisher(self, client_id: str) -> int: ...


@runtime_checkable
class PartitionWriter(PartitionReader, Protocol):
    """A partition that this shard appends to. starts: as of `Partition`"""

    @property
    def starts(self) -> list[tuple[int, int]]: ...
    def append(
        self, rows: bytearray | memoryview, frames: Buffer, count: int, flags: int, now_us: int, tags: bytes = b"",
        sources: bytes = b"",
    ) -> Chunk: ...  # fmt: skip
    def cold_read(self, lsn: int, bytes_max: int = 1 << 20) -> Runnable: ...
