"""Preallocated space: zeros ahead of an active segment's chunks, so that the sync of a group changes no metadata.

A segment's data ends where only zeros follow: no chunk begins with a zero. What is left behind the data is given back
when the segment is sealed, or at the next start. docs/decisions/0025-preallocated-segments.md."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, mmap

from commitlog.disk.files import Files

PIECE_BYTES_MIN = 1 << 16
PIECE_BYTES_MAX = 1 << 20
LOW_PART = 4  # the next piece is due when so much of the last one is left: a quarter
FREE_PART = 64  # of what is free on the disk, one piece takes at most such a part
GROUP_BYTES_MAX = 1 << 15  # for larger groups writing zeros first costs more than a sync without metadata saves
PAGE = 4096
READ_BYTES = 1 << 16

ZEROS = memoryview(mmap(-1, PIECE_BYTES_MAX, MAP_PRIVATE | MAP_ANONYMOUS, prot=PROT_READ))


def piece_bytes(position: int, end: int, segment_bytes_max: int, free_bytes: int) -> int:
    """The size of the next piece: as much as the segment has, within bounds; 0 where that is not worth it.

    position: up to where the segment is written; end: where the piece begins"""
    wanted = min(max(position, PIECE_BYTES_MIN), PIECE_BYTES_MAX, segment_bytes_max // 2)
    fits = min(wanted, segment_bytes_max - end, free_bytes // FREE_PART)
    # Less than half of what is wanted: the segment is nearly full, or the disk.
    return fits // PAGE * PAGE if fits * 2 >= wanted else 0


def padded(end: int) -> int:
    """The end of the page, so that a chunk keeps the zeros with which it is padded."""
    return (end + PAGE - 1) // PAGE * PAGE


def data_end(files: Files, handle: int, start: int, size: int) -> int:
    """The byte behind the last one in start..size that is not zero; `start` if all are.

    While a broker writes: everything below was written before it. Cost: reads the zeros, and one block more"""
    end = size
    while end > start:
        begin = max(start, end - READ_BYTES)
        data = files.read(handle, begin, end - begin).rstrip(b"\0")
        if data:
            return begin + len(data)
        end = begin
    return start


def release(files: Files, path: str, stop: int, size: int) -> None:
    """Give back whole pages of zeros at the end of a segment that is written to no more. raises: OSError

    stop: where what counts ends; what is behind it and not zero stays too."""
    handle = files.open(path, write=True)
    try:
        end = padded(data_end(files, handle, stop, size))
        if end < size:
            files.truncate(handle, end)
    finally:
        files.close(handle)
