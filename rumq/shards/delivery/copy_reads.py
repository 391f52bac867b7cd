"""Reads of partitions that leaders on other nodes own: from this node's copies, and from the leader what these lack.

A copy is read beside the loop, on one thread for all of them. Whatever a copy cannot prove to be committed, or cannot
read, the leader is asked for at the same lsn, so readers see one sequence. docs/reference/replay.md, "In a cluster"."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from commitlog.disk.files import Files
from commitlog.log.partition_types import PartitionReader
from commitlog.replica.copy_reader import CopyRead, CopyReader
from rumq.loop.ports import Clock, EventSink, ReadDone, ReadPool
from rumq.shards.bus.remote_partition import RemotePartition

COPIES = 2  # the lane of the reader's worker: a first look at a copy takes longer than a read
READ_BYTES = 1 << 20  # that one read takes of a file
READERS_MAX = 16  # copies whose segments are kept listed
LOOK_SECONDS = 0.25  # between two looks at a copy for records that came since
PAUSE_SECONDS = 1.0  # a copy that lacks a record it should have is not asked for so long
DAMAGED_SECONDS = 60.0  # a damaged copy is not asked for so long


class Owners(Protocol):
    """Reads by way of the shard that owns the partition: `rumq.shards.peers.query_client`."""

    def read(self, index: int, lsn: int, done: ReadDone) -> None: ...


class CopiesHere(NamedTuple):
    """root: the data directory; epoch_elsewhere: of a shard's leader, the epoch under which this shard was linked to it
    last; 0: it is on this node, or there was none"""

    files: Files
    root: str
    epoch_elsewhere: Callable[[int], int]


class KnownCopy:
    """reader: for the pool's thread; end_lsn: as it was last; not_before: of the next look, monotonic seconds"""

    __slots__ = ("end_lsn", "not_before", "reader")

    def __init__(self, reader: CopyReader) -> None:
        self.reader = reader
        self.end_lsn = 0
        self.not_before = 0.0


class CopyReads:
    """The `RemoteReader` of a shard in a cluster. bytes: of records that were read from copies, so far"""

    def __init__(
        self, partitions: Sequence[PartitionReader], here: CopiesHere, pool: ReadPool, owners: Owners, clock: Clock,
        events: EventSink,
    ) -> None:  # fmt: skip
        self._partitions, self._here, self._pool, self._owners = partitions, here, pool, owners
        self._clock, self._events = clock, events
        self._copies: OrderedDict[int, KnownCopy] = OrderedDict()
        self.bytes = 0

    def read(self, index: int, lsn: int, done: ReadDone) -> None:
        """Read whole chunks of another shard's partition, from `lsn` on."""
        partition = self._partitions[index]
        assert isinstance(partition, RemotePartition)
        epoch = self._here.epoch_elsewhere(partition.owner)
        # What retention has removed at the leader is gone, though a copy may have it a little longer.
        if not epoch or not partition.is_met or partition.is_volatile or lsn < partition.first_lsn:
            self._owners.read(index, lsn, done)
            return
        copy = self._copy(partition)
        if lsn >= copy.end_lsn:
            if self._clock.monotonic < copy.not_before:
                self._owners.read(index, lsn, done)
                return
            copy.not_before = self._clock.monotonic + LOOK_SECONDS

        def found(read: CopyRead | None, fault: BaseException | None) -> None:
            is_same = self._here.epoch_elsewhere(partition.owner) == epoch
            if read is None or not read.chunks or not is_same:
                self._put_off(copy, partition, str(fault) if fault is not None else read.why if read else "")
                if not is_same:
                    self._copies.pop(index, None)  # names of what is not used are to come again
                self._owners.read(index, lsn, done)
                return
            copy.end_lsn = copy.reader.end_lsn
            partition.name_topics(read.names)
            self.bytes += sum(len(chunk.rows) + len(chunk.frames) for chunk in read.chunks)
            done(list(read.chunks), None)

        self._pool.submit(lambda: copy.reader.read(lsn, epoch, READ_BYTES), found, COPIES)

    def _copy(self, partition: RemotePartition) -> KnownCopy:
        copy = self._copies.get(partition.index)
        if copy is None:
            reader = CopyReader(
                self._here.files, self._here.root, partition.owner, partition.stream, partition.generation,
                partition.number,
            )  # fmt: skip
            copy = self._copies[partition.index] = KnownCopy(reader)
            if len(self._copies) > READERS_MAX:
                self._copies.popitem(last=False)
        self._copies.move_to_end(partition.index)
        return copy

    def _put_off(self, copy: KnownCopy, partition: RemotePartition, why: str) -> None:
        """The leader is asked for a while."""
        copy.end_lsn = copy.reader.end_lsn
        if not copy.end_lsn:  # its files say nothing now; else they lack what has come last
            copy.not_before = self._clock.monotonic + (DAMAGED_SECONDS if why else PAUSE_SECONDS)
        if why:
            self._events.tell("cluster.copy_unreadable", stream=partition.stream, partition=partition.number, why=why)
