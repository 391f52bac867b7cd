"""What another shard publishes to partitions of this shard: its numbers are translated, and commits acknowledged."""
# compiled: hot

from __future__ import annotations

import struct
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from commitlog.chunk import FLAG_QOS
from commitlog.kernels import rows as kernel
from commitlog.log.partition_types import PartitionWriter
from router.commands import Appended
from rumq.loop.ports import Clock, CommandQueue
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.messages import Numbered, PublishedRecords
from rumq.tracing.tracer import Tracer

UNKNOWN = 0xFFFFFFFF


class IncomingPartition:
    """The records of one other shard for one partition."""

    def __init__(self, partition: PartitionWriter, source: int, number_topic: Callable[[bytes], int]) -> None:
        """source: the incarnation of the other shard; number_topic: the id of a topic in this partition"""
        self._partition = partition
        self.source = source
        self._number_topic = number_topic
        self._topics = array("I")
        self._publishers = array("I", [0])
        self._appended: deque[tuple[int, int]] = deque()  # (our lsn behind it, its sequence), not committed yet
        self._queued = 0  # the other shard's sequence up to which its records are in a command
        self._sequence = 0  # the other shard's sequence up to which its records are committed

    def append(
        self, message: PublishedRecords, raw: memoryview, now_us: int, say: Callable[[Numbered], None]
    ) -> Appended:
        """Append what was published. raises: ValueError for numbers that were never introduced"""
        for number, name in message.topics:
            put(self._topics, number, self._number_topic(name))
        told = []
        for number, name in message.publishers:
            ours = self._partition.add_publisher(name.decode())
            if number < len(self._publishers) and self._publishers[number] != UNKNOWN:
                self._partition.release_publisher(self._publishers[number])
            put(self._publishers, number, ours)
            told.append((number, ours))
        if told:
            say(Numbered(self._partition.index, told))
        rows = raw[: message.rows_len]
        frames_end = message.rows_len + message.frames_len
        unknown = kernel.translate(rows, message.count, self._topics, self._publishers)
        if unknown >= 0:
            raise ValueError(f"row {unknown} of a batch on the bus has a number that was never introduced")
        self._queued = message.sequence
        chunk = self._partition.append(
            rows, raw[message.rows_len : frames_end], message.count, message.flags, now_us,
            bytes(raw[frames_end:]), struct.pack("<QQ", self.source, message.sequence),
        )  # fmt: skip
        return Appended(self._partition.index, chunk)

    def close(self) -> None:
        """The other shard is gone: its publishers are nobody's."""
        for number in self._publishers:
            if number and number != UNKNOWN:
                self._partition.release_publisher(number)

    def step_done(self) -> None:
        """The commands have been carried out: all records up to here are in the partition."""
        if self._queued:
            self._appended.append((self._partition.next_lsn, self._queued))
            self._queued = 0

    def committed_sequence(self) -> int:
        """The sequence up to which everything is committed."""
        placed, lsn = self._appended, self._partition.committed_lsn
        while placed and placed[0][0] <= lsn:
            self._sequence = placed.popleft()[1]
        return self._sequence


def put(table: array[int], number: int, value: int) -> None:
    missing = number + 1 - len(table)
    if missing > 0:
        table.extend([UNKNOWN] * missing)
    table[number] = value


class TopicNumbers(Protocol):
    """`rumq.shards.write_path.topic_registry`"""

    def number(self, partition: PartitionWriter, name: bytes) -> int: ...


class PublishReceiver:
    """Everything that one other shard publishes here. incoming: by partition; empty until the shard has joined"""

    def __init__(
        self, partitions: Sequence[PartitionWriter], topics: TopicNumbers, commands: CommandQueue, totals: ShardTotals,
        urgent: Callable[[int], None], clock: Clock, tracer: Tracer,
    ) -> None:  # fmt: skip
        """partitions: of this shard; urgent: somebody waits until a partition is committed"""
        self._partitions, self._topics, self._commands = partitions, topics, commands
        self._totals, self._urgent, self._clock, self._tracer = totals, urgent, clock, tracer
        self.incoming: dict[int, IncomingPartition] = {}

    def joined(self, incarnation: int) -> None:
        self.lost()
        for partition in self._partitions:
            self.incoming[partition.index] = IncomingPartition(
                partition, incarnation, partial(self._topics.number, partition)
            )

    def lost(self) -> None:
        for incoming in self.incoming.values():
            incoming.close()
        self.incoming = {}

    def published(self, link: BusLink, message: PublishedRecords, raw: memoryview) -> None:
        command = self.incoming[message.partition].append(message, raw, self._clock.now_us, link.say)
        self._totals.taken_over += message.count
        if message.traced:
            chunk = command.chunk
            chunk.traces = self._tracer.received(message.traced, chunk.base_lsn, message.sent_us, is_published=True)
        self._commands.put(command)
        if message.flags & FLAG_QOS:
            self._urgent(message.partition)
