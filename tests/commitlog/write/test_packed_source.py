"""Packing keeps all that a segment says, or leaves it: what a later version adds to the format is not lost."""

import struct
from collections.abc import Callable
from zlib import crc32

import pytest

from commitlog import Partition
from commitlog.chunk import HEADER_BYTES, MARK, entry_head, maybe_header
from commitlog.format.segment import walk
from commitlog.row_layout import ROW_BYTES
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW, append, everything, index, mark, opened, pack, some_records, write

KIND_AT, FLAGS_AT, COUNT_AT, FRAMES_AT, AUX_AT, EPOCH_AT, AUX_CRC_AT, FORM_AT, ZEROS_AT, CRC_AT = (
    5, 6, 24, 28, 32, 60, 76, 88, 96, 124,
)  # fmt: skip


def logged() -> tuple[SimulatedFiles, Partition, str]:
    """A log whose first segment is worth packing, and its path."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=100_000).partitions[0]
    for n in range(40):
        append(partition, some_records(1, n), NOW + n, f"device-{n % 7}", {0: 7 + n} if n % 5 == 0 else None)
        write(partition)
        mark(partition)
    index(partition)
    return files, partition, partition.segments.files[0].path


def rewritten(files: SimulatedFiles, path: str, at: int, change: Callable[[bytearray], None]) -> None:
    """Change a chunk as another version would have written it: with checksums that are right."""
    raw = bytearray(files.content(path))
    chunk = raw[at : at + 4096]
    change(chunk)
    chunk[CRC_AT:HEADER_BYTES] = crc32(chunk[:CRC_AT]).to_bytes(4, "little")
    raw[at : at + 4096] = chunk
    handle = files.open(path, write=True)
    files.write(handle, 0, [raw])
    files.sync(handle)
    files.close(handle)


def position_of(files: SimulatedFiles, partition: Partition, path: str, kind: int) -> int:
    """Of the second chunk of a kind."""
    handle = files.open(path)
    found = [
        at for at, header in walk(files, handle, partition.segments.files[0].salt, 4096, 1 << 30) if header.kind == kind
    ]
    files.close(handle)
    return found[1]


def put(at: int, value: bytes) -> Callable[[bytearray], None]:
    def change(chunk: bytearray) -> None:
        chunk[at : at + len(value)] = value

    return change


def add_aux(more: bytes) -> Callable[[bytearray], None]:
    def change(chunk: bytearray) -> None:
        count, frames, size = struct.unpack_from("<III", chunk, COUNT_AT)
        begin = HEADER_BYTES + ROW_BYTES * count + frames
        chunk[begin + size : begin + size + len(more)] = more
        chunk[AUX_AT : AUX_AT + 4] = (size + len(more)).to_bytes(4, "little")
        chunk[AUX_CRC_AT : AUX_CRC_AT + 4] = crc32(chunk[begin : begin + size + len(more)]).to_bytes(4, "little")

    return change


UNKNOWN = {
    "an aux entry of another kind": (1, add_aux(entry_head(9, 1, b"more") + b"more")),
    "bytes behind the aux entries": (1, add_aux(b"abc")),
    "an aux entry of a mark": (MARK, add_aux(entry_head(9, 1, b"more") + b"more")),
    "a flag": (1, put(FLAGS_AT, (64 | 1).to_bytes(2, "little"))),
    "a kind without records": (MARK, put(KIND_AT, b"\x07")),
    "another writer": (1, put(EPOCH_AT, (99).to_bytes(4, "little"))),
    "another checksum": (MARK, put(FORM_AT + 2, b"\x02")),
    "a generation": (1, put(FORM_AT + 4, (5).to_bytes(4, "little"))),
    "a field of the header": (1, put(ZEROS_AT + 20, b"\x01")),
    "padding that the disk changed": (1, put(4000, b"\x01")),
    "padding of a mark": (MARK, put(4095, b"\x01")),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_segment_that_says_more_than_is_known_stays_as_it_is(what: str) -> None:
    kind, change = UNKNOWN[what]
    files, partition, path = logged()
    rewritten(files, path, position_of(files, partition, path, kind), change)
    before, found = files.content(path), everything(partition)
    assert pack(partition) == 0
    assert files.content(path) == before and everything(partition) == found


@pytest.mark.parametrize(("at", "value"), [(8, b"\x02\0"), (200, b"more")])
def test_a_segment_header_that_says_more_stays(at: int, value: bytes) -> None:
    """A later format version that earlier readers may read, and a field that they do not know."""
    files, partition, path = logged()
    raw = bytearray(files.content(path))
    raw[at : at + len(value)] = value
    raw[4092:4096] = crc32(raw[:4092]).to_bytes(4, "little")
    handle = files.open(path, write=True)
    files.write(handle, 0, [raw[:4096]])
    files.close(handle)
    assert pack(partition) == 0 and files.content(path)[at : at + len(value)] == value


def test_row_bits_that_are_not_known_are_kept() -> None:
    files, partition, path = logged()
    at = position_of(files, partition, path, 1)

    def change(chunk: bytearray) -> None:
        count, frames = struct.unpack_from("<II", chunk, COUNT_AT)
        assert count == 1 and frames
        chunk[HEADER_BYTES + 28 : HEADER_BYTES + 32] = b"\x81\x40\x23\x01"
        chunk[68:72] = crc32(chunk[HEADER_BYTES : HEADER_BYTES + ROW_BYTES]).to_bytes(4, "little")

    rewritten(files, path, at, change)
    assert pack(partition) == 1
    raw = files.content(path)
    header = maybe_header(raw[4096 : 4096 + HEADER_BYTES], partition.segments.files[0].salt)
    assert header is not None and header.count > 1
    rows = raw[4096 + HEADER_BYTES : 4096 + HEADER_BYTES + ROW_BYTES * header.count]
    assert b"\x81\x40\x23\x01" in {rows[row : row + 4] for row in range(28, len(rows), ROW_BYTES)}
