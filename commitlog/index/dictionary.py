"""A partition's topic and publisher names, saved apart from its segments. docs/reference/log-format.md, "topics.snap".

So topics keep their numbers when retention removes their last record, and a start need not read every segment. Covers
only sealed and synced segments. Used by the threads that index and that remove, one at a time."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from commitlog.checksum import crc32
from commitlog.chunk import NUMBER_MAX
from commitlog.disk.files import Files, replace_file, whole_file
from commitlog.index.index import NAMES_A_PIECE, crc32_of
from commitlog.index.index_builder import Index
from commitlog.kernels import topics as kernel
from commitlog.names.publisher_names import PublisherNames
from commitlog.names.topic_table import topic_table

SNAPSHOT = "topics.snap"
MAGIC = b"RUMQTOP1"
HEAD = struct.Struct("<8sQII")
TOPIC, PUBLISHER = struct.Struct("<QH"), struct.Struct("<H")
RUN = 1 << 12
NOT_KNOWN = bytes(PUBLISHER.size * RUN)  # publishers that are dropped stand in runs
SEALS_BETWEEN = 16  # a start scans at most so many segments, beside those that were being written


class DictionarySnapshot(NamedTuple):
    """Every topic used below `lsn`, in the order of their numbers, and its next offset.

    publishers: client ids of numbers below `publishers_end`, as far as they are still known"""

    lsn: int
    topics: list[bytes]
    offsets: array[int]
    publishers: dict[int, bytes]
    publishers_end: int


def snapshot_pieces(snapshot: DictionarySnapshot) -> list[bytes | bytearray | memoryview]:
    """The bytes of a snapshot, in pieces."""
    count = len(snapshot.topics)
    if count != len(snapshot.offsets):
        raise ValueError(f"{count} topics with {len(snapshot.offsets)} offsets")
    pieces: list[bytes | bytearray | memoryview] = [
        HEAD.pack(MAGIC, snapshot.lsn, count, snapshot.publishers_end),
        # A piece at a time: a kernel lets no other thread run.
        *(
            kernel.offsets_and_names(snapshot.offsets, snapshot.topics, at, min(at + NAMES_A_PIECE, count))
            for at in range(0, count, NAMES_A_PIECE)
        ),
        publisher_piece(snapshot.publishers, snapshot.publishers_end),
    ]
    return [*pieces, crc32_of(pieces).to_bytes(4, "little")]


def publisher_piece(names: Mapping[int, bytes], end: int) -> bytes:
    """The client id of each number below `end`, empty where it is not known: a length of 0, in runs."""
    pieces = []
    at = 0
    for number in sorted(names):
        if at <= number < end:
            pieces += [bytes(2 * (number - at)), PUBLISHER.pack(len(names[number])), names[number]]
            at = number + 1
    pieces.append(bytes(2 * (end - at)))
    return b"".join(pieces)


def decode_snapshot(raw: bytes) -> DictionarySnapshot | None:
    """None when its CRC differs: the segments have the same names, for their records."""
    if len(raw) < HEAD.size + 4 or raw[:8] != MAGIC or crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
        return None
    _, lsn, topics, publishers = HEAD.unpack_from(raw)
    if lsn >= NUMBER_MAX:
        return None
    found = DictionarySnapshot(lsn, [], array("Q"), {}, max(1, publishers))
    at, end = HEAD.size, len(raw) - 4
    for _ in range(topics):
        if at + TOPIC.size > end:
            return None
        offset, length = TOPIC.unpack_from(raw, at)
        at += TOPIC.size
        found.offsets.append(offset)
        found.topics.append(raw[at : at + length])
        at += length
    number = 0
    while number < publishers:
        if number + RUN <= publishers and raw.startswith(NOT_KNOWN, at, end):
            at, number = at + len(NOT_KNOWN), number + RUN
            continue
        if at + PUBLISHER.size > end:
            return None
        (length,) = PUBLISHER.unpack_from(raw, at)
        at += PUBLISHER.size
        if length:
            found.publishers[number] = raw[at : at + length]
        at, number = at + length, number + 1
    return found if at == end else None


def maybe_snapshot(files: Files, directory: str) -> DictionarySnapshot | None:
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
    """The content of the next snapshot. topics: the partition's own list, which only grows; publishers: its own."""

    def __init__(
        self, files: Files, directory: str, topics: list[bytes], publishers: PublisherNames, offsets: array[int],
        lsn: int, saved_lsn: int,
    ) -> None:  # fmt: skip
        """offsets: as of `lsn`, below which all is sealed and synced; saved_lsn: the lsn in the file, -1: no file."""
        self._files, self._directory = files, directory
        self._topics, self._publishers = topics, publishers
        self._offsets = array("Q", offsets)
        self._publishers_end = publishers.next_number
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
            snapshot = DictionarySnapshot(
                self.lsn,
                self._topics[: len(self._offsets)],
                self._offsets,
                self._publishers.copied(self._publishers_end),
                self._publishers_end,
            )
            replace_file(self._files, f"{self._directory}/{SNAPSHOT}", *snapshot_pieces(snapshot))
            self.saved_lsn, self._seals = self.lsn, 0
            return True
