"""A partition's topic and publisher names, saved apart from its segments. docs/log-format.md, "topics.snap".

So topics keep their numbers when retention removes their last record, and a start need not read every segment. Covers
only sealed and synced segments. Used by the threads that index and that remove, one at a time."""

from __future__ import annotations

import struct
from array import array
from threading import Lock
from typing import NamedTuple
from zlib import crc32

from commitlog.chunk import NUMBER_MAX
from commitlog.files import Files, replace_file, whole_file
from commitlog.index import NAMES_A_PIECE, Index, crc32_of
from commitlog.kernels import topics as kernel
from commitlog.topic_table import topic_table

SNAPSHOT = "topics.snap"
MAGIC = b"RUMQTOP1"
HEAD = struct.Struct("<8sQII")
TOPIC, PUBLISHER = struct.Struct("<QH"), struct.Struct("<H")
SEALS_BETWEEN = 16  # a start scans at most so many segments, beside those that were being written


class Snapshot(NamedTuple):
    """Every topic and publisher used below `lsn`, in the order of their numbers; the next offset of each topic."""

    lsn: int
    topics: list[bytes]
    offsets: array[int]
    publishers: list[bytes]


def snapshot_pieces(snapshot: Snapshot) -> list[bytes | bytearray | memoryview]:
    """The bytes of a snapshot, in pieces."""
    count = len(snapshot.topics)
    if count != len(snapshot.offsets):
        raise ValueError(f"{count} topics with {len(snapshot.offsets)} offsets")
    pieces: list[bytes | bytearray | memoryview] = [
        HEAD.pack(MAGIC, snapshot.lsn, count, len(snapshot.publishers)),
        # A piece at a time: a kernel lets no other thread run.
        *(
            kernel.offsets_and_names(snapshot.offsets, snapshot.topics, at, min(at + NAMES_A_PIECE, count))
            for at in range(0, count, NAMES_A_PIECE)
        ),
        b"".join(struct.pack("<H", len(name)) + name for name in snapshot.publishers),
    ]
    return [*pieces, crc32_of(pieces).to_bytes(4, "little")]


def decode_snapshot(raw: bytes) -> Snapshot | None:
    """None when its CRC differs: the segments have the same names, for their records."""
    if len(raw) < HEAD.size + 4 or raw[:8] != MAGIC or crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
        return None
    _, lsn, topics, publishers = HEAD.unpack_from(raw)
    if lsn >= NUMBER_MAX:
        return None
    found = Snapshot(lsn, [], array("Q"), [])
    at, end = HEAD.size, len(raw) - 4
    for layout, count, names in ((TOPIC, topics, found.topics), (PUBLISHER, publishers, found.publishers)):
        for _ in range(count):
            if at + layout.size > end:
                return None
            *offset, length = layout.unpack_from(raw, at)
            at += layout.size
            found.offsets.extend(offset)
            names.append(raw[at : at + length])
            at += length
    return found if at == end else None


def maybe_snapshot(files: Files, directory: str) -> Snapshot | None:
    """The snapshot of a partition; None when there is none that checks."""
    path = f"{directory}/{SNAPSHOT}"
    return decode_snapshot(whole_file(files, path)) if files.exists(path) else None


def take_offsets(index: Index, offsets: array[int]) -> None:
    """Raise the next offset of each topic to what follows its rows in a segment; makes room for all of them."""
    table = topic_table(index.topics)
    if table.highest >= len(offsets):
        offsets.frombytes(bytes(8 * (table.highest + 1 - len(offsets))))
    kernel.raise_offsets(table.packed, offsets)


class Dictionary:
    """The content of the next snapshot. topics, publishers: the partition's own lists, which only grow."""

    def __init__(
        self, files: Files, directory: str, topics: list[bytes], publishers: list[bytes], offsets: array[int],
        lsn: int, saved_lsn: int,
    ) -> None:  # fmt: skip
        """offsets: as of `lsn`, below which all is sealed and synced; saved_lsn: the lsn in the file, -1: no file."""
        self._files, self._directory = files, directory
        self._topics, self._publishers = topics, publishers
        self._offsets = array("Q", offsets)
        self._publishers_end = len(publishers)
        self.lsn, self.saved_lsn = lsn, saved_lsn
        self._seals = 0
        self._taken: dict[int, int] = {}  # base lsn -> end lsn of segments that one before them keeps waiting
        self._lock = Lock()

    def take(self, index: Index, base_lsn: int, end_lsn: int) -> None:
        """Add a segment that is sealed and synced; saves now and then.

        Segments count in order: one is not covered before those that precede it."""
        with self._lock:
            take_offsets(index, self._offsets)
            self._publishers_end = max(self._publishers_end, 1 + max(index.publishers, default=0))
            self._taken[base_lsn] = max(end_lsn, self._taken.get(base_lsn, 0))
            for base in sorted(self._taken):
                if base > self.lsn:
                    break
                self.lsn = max(self.lsn, self._taken.pop(base))
            self._seals += 1
            due = self._seals >= SEALS_BETWEEN
        if due:
            self.save(self.lsn)

    def save(self, wanted_lsn: int) -> bool:
        """Make the file cover `wanted_lsn`; False when segments below it are not added yet."""
        with self._lock:
            if self.saved_lsn >= wanted_lsn:
                return True
            if self.lsn < wanted_lsn:
                return False
            snapshot = Snapshot(
                self.lsn,
                self._topics[: len(self._offsets)],
                self._offsets,
                self._publishers[: self._publishers_end],
            )
            replace_file(self._files, f"{self._directory}/{SNAPSHOT}", *snapshot_pieces(snapshot))
            self.saved_lsn, self._seals = self.lsn, 0
            return True
