"""Reads of records that are not in memory: from disk beside the loop, or as another shard's partition is read."""

from __future__ import annotations

from typing import Protocol

from commitlog import Chunk, Gap
from commitlog.format.joined_chunks import joined
from commitlog.log.partition_types import PartitionWriter
from commitlog.log.store import Store
from router.commands import ColdChunks
from router.effects import ReadCold
from rumq.loop.ports import CommandQueue, EventSink, ReadDone, ReadPool

COLD_READ_BYTES = 1 << 20  # that one read takes of a file
JOINED_BYTES_MAX = 1 << 16  # of small chunks that are delivered as one: a piece of a blob that gets packet ids


class RemoteReader(Protocol):
    """Reads of partitions of other shards."""

    def read(self, index: int, lsn: int, done: ReadDone) -> None: ...


class ColdReads:
    """The `PartitionReader` of a shard."""

    def __init__(
        self, store: Store, pool: ReadPool, commands: CommandQueue, events: EventSink, remote: RemoteReader
    ) -> None:
        self._partitions, self._pool = store.partitions, pool
        self._commands, self._events, self._remote = commands, events, remote

    def read(self, index: int, lsn: int, done: ReadDone) -> None:
        """Read whole chunks of a partition, from `lsn` on, wherever they are."""
        partition = self._partitions[index]
        if isinstance(partition, PartitionWriter):
            read = partition.cold_read(lsn, COLD_READ_BYTES)
            self._pool.submit(lambda: list(joined(read.run(), JOINED_BYTES_MAX)), done)
        else:
            self._remote.read(index, lsn, done)

    def carry_out(self, effect: ReadCold) -> None:
        """Answer with `ColdChunks`: without chunks if the disk fails, which is told."""

        def done(chunks: list[Chunk | Gap] | None, fault: BaseException | None) -> None:
            if fault is not None:
                partition = self._partitions[effect.partition]
                self._events.tell("log.failed", stream=partition.stream, partition=partition.number, why=str(fault))
            self._commands.put(ColdChunks(effect.partition, effect.lsn, chunks or []))

        self.read(effect.partition, effect.lsn, done)
