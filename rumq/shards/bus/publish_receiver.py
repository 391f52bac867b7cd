"""What another shard publishes to a partition of ours: its numbers become ours, and it is told what is committed.

Knows no socket: records become commands for the router, answers are handed to `say`."""

from __future__ import annotations

import struct
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

from commitlog.kernels import rows as kernel
from router.commands import Append
from rumq.shards.bus.messages import Numbered, Published

UNKNOWN = 0xFFFFFFFF


class Incoming:
    """The way from one other shard to one partition."""

    def __init__(self, partition: Any, source: int, number_topic: Callable[[bytes], int]) -> None:
        """source: the incarnation of the other shard; number_topic: the id of a topic in this partition"""
        self._partition = partition
        self._source = source
        self._number_topic = number_topic
        self._topics = array("I")
        self._publishers = array("I", [0])
        self._placed: deque[tuple[int, int]] = deque()  # (our lsn behind it, its sequence), not committed yet
        self._unplaced = 0
        self.sequence = 0  # what of the other shard's is committed

    def take(self, message: Published, raw: memoryview, say: Callable[..., None]) -> Append:
        """The command for what was published. raises: ValueError for numbers that were never introduced"""
        for number, name in message.topics:
            put(self._topics, number, self._number_topic(name))
        told = []
        for number, name in message.publishers:
            ours = self._partition.add_publisher(name.decode())
            put(self._publishers, number, ours)
            told.append((number, ours))
        if told:
            say(Numbered(self._partition.index, told))
        rows = bytearray(raw[: message.rows_len])
        frames_end = message.rows_len + message.frames_len
        unknown = kernel.translate(rows, message.count, self._topics, self._publishers)
        if unknown >= 0:
            raise ValueError(f"row {unknown} of a batch on the bus has a number that was never introduced")
        self._unplaced = message.sequence
        return Append(
            self._partition.index, rows, bytes(raw[message.rows_len : frames_end]), message.count, message.flags,
            bytes(raw[frames_end:]), struct.pack("<QQ", self._source, message.sequence),
        )  # fmt: skip

    def placed(self) -> None:
        """The commands have been carried out: everything up to here stands before the partition's end."""
        if self._unplaced:
            self._placed.append((self._partition.next_lsn, self._unplaced))
            self._unplaced = 0

    def committed(self) -> int:
        """The sequence up to which everything is committed."""
        placed, lsn = self._placed, self._partition.committed_lsn
        while placed and placed[0][0] <= lsn:
            self.sequence = placed.popleft()[1]
        return self.sequence


def put(table: array[int], number: int, value: int) -> None:
    missing = number + 1 - len(table)
    if missing > 0:
        table.extend([UNKNOWN] * missing)
    table[number] = value
