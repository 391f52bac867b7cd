"""The active segment of a partition: opened, written to, sealed or abandoned.

Runs on the I/O thread, or on the loop while that thread has nothing of the partition, and shares no mutable state with
others. One function writes, one syncs; `Flush` has both done. The time is that of the records.
docs/reference/log-format.md."""
# compiled: hot

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commitlog.chunk import (
    ALIGN,
    HEADER_BYTES,
    MARK,
    SEAL,
    SYNC_ALIGN,
    Buffer,
    Chunk,
    padded,
)
from commitlog.disk.clock_guard import Jump
from commitlog.disk.files import Files
from commitlog.disk.os_errors import FULL
from commitlog.disk.preallocation import GROUP_BYTES_MAX, LOW_PART, ZEROS, piece_bytes
from commitlog.format.chunk_layout import ChunkLayout, NumberedNames
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.manifest import Edit, Manifest, clock_edit
from commitlog.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, encode_segment_header
from commitlog.index.index_builder import IndexBuilder
from commitlog.index.segment_news import Preallocated, SegmentEnded, SegmentOpened
from commitlog.kernels.positioned_write import WAITED, write_now
from commitlog.write.tap import WriterTap

NOTHING_NEW: list[Any] = []
HEAD_END = SEGMENT_HEADER_BYTES


class Flush:
    """A chunk that is laid out, to be written and synced: by `run`, on any thread, or by a kernel with the descriptor.

    A segment has one, for one chunk after the other.
    descriptor: of the segment, -1: only `run` can; data, size: its first bytes are the chunk, until the next one
    syncs: it is synced, too"""

    __slots__ = ("_files", "_handle", "data", "descriptor", "position", "size", "syncs")

    def __init__(
        self, files: Files, handle: int, descriptor: int, position: int, data: Buffer, syncs: bool = True
    ) -> None:  # fmt: skip
        self._files, self._handle, self.syncs, self.descriptor = files, handle, syncs, descriptor
        self.set(position, data, len(data))

    def set(self, position: int, data: Buffer, size: int) -> None:
        self.position, self.data, self.size = position, data, size

    def run(self) -> None:
        """raises: OSError"""
        self._files.write(self._handle, self.position, [memoryview(self.data)[: self.size]])
        if self.syncs:
            self._files.sync(self._handle)

    def write_now(self) -> bool:
        """Write it, on this thread, and sync nothing; returns whether the thread had to wait. raises: OSError"""
        if self.descriptor < 0:
            self._files.write(self._handle, self.position, [memoryview(self.data)[: self.size]])
            return False
        found = write_now(self.descriptor, self.data, self.size, self.position)
        if not found:
            return False
        number = found & ~WAITED
        if number:
            raise OSError(number, os.strerror(number))
        return True


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """Of every segment of a partition. epoch: one higher at every start; sync_groups: a group is synced before it is
    committed; direct_bytes_min: chunks of at least this size bypass the page cache, where the file system allows it"""

    stream: str
    generation: int
    number: int
    epoch: int
    boot_id: bytes
    sync_groups: bool
    bytes_max: int
    us_max: int
    direct_bytes_min: int


class SegmentWriter:
    """The active segment of one partition. tap: told what is written, where copies are made; set before anything is"""

    def __init__(
        self, files: Files, directory: str, options: SegmentOptions, *, names: NumberedNames, manifest: Manifest,
        random: Callable[[int], bytes],
    ) -> None:  # fmt: skip
        self._options = options
        self._direct_bytes_min = options.direct_bytes_min
        self._layout = ChunkLayout(names, options.generation, options.epoch)
        self._files = files
        self._directory = directory
        self._generation, self._epoch = options.generation, options.epoch
        self.sync_groups = options.sync_groups
        self._small_align = SYNC_ALIGN if options.sync_groups else ALIGN
        self._bytes_max, self._us_max = options.bytes_max, options.us_max
        self._names = names
        self._manifest = manifest
        self._random = random
        self._handle: int | None = None
        self._flush: Flush
        self.path = ""
        self._opened_us = 0
        self.position = 0
        self._allocated = 0  # up to here the file is zeros behind `position`, and synced
        self._low = 0  # with less than that left, the next piece is due
        self._may_allocate = False
        self._base_lsn = self._salt = 0
        self._draft = IndexBuilder()
        self._owed: list[Edit] = []
        self.must_end = False  # the next group goes to another segment
        self._is_known = False  # the manifest may have an `open` of the active segment
        self.tap: WriterTap | None = None

    # One function writes, one syncs

    def _write(self, data: Buffer, *, direct: bool = False) -> None:
        assert self._handle is not None
        if direct:
            self._files.write_direct(self._handle, self.path, self.position, memoryview(data))
        else:
            self._files.write(self._handle, self.position, [data])
        if self.tap is not None and self.position:
            self.tap.written(self._name, self.position, data)
        self.position += len(data)

    def sync(self) -> None:
        if self._handle is not None:
            self._files.sync(self._handle)

    # Segments

    def open_segment(self, base_lsn: int, now_us: int) -> SegmentOpened:
        """Open a new segment; it is on disk and in the manifest before a chunk is written to it. raises: OSError"""
        uuid = self._random(16)
        salt = self._salt = self.new_salt()
        # Of two segments with the same base lsn, the time tells which was the later one.
        self._opened_us = max(now_us, self._opened_us + 1)
        header = SegmentHeader(
            self._generation, self._options.number, self._options.stream, uuid, salt, base_lsn, self._opened_us,
            self._epoch, self._options.boot_id,
        )  # fmt: skip
        name = f"{base_lsn:020d}-{uuid.hex()[:8]}.seg"
        self.path = f"{self._directory}/{name}"
        self._handle = self._files.create(self.path)
        descriptor = self._files.descriptor(self._handle)
        self._flush = Flush(self._files, self._handle, descriptor, 0, b"", self.sync_groups)
        self.position, self._is_known = 0, False
        self._allocated = self._low = 0
        self._may_allocate = self.sync_groups
        try:
            opening = encode_segment_header(header)
            self._write(opening)
            self.sync()
            self._files.sync_directory(self._directory)
            self._pay()
            self._is_known = True
            self._manifest.add({"edit": "open", "segment": name, "base_lsn": base_lsn})
        except Exception:
            self._remove()
            raise
        self.must_end = False
        self._layout.begin_segment(salt)
        self._base_lsn, self._draft = base_lsn, IndexBuilder(self._names.topics)
        self._names.publishers.written = self._draft.index.publishers
        if self.tap is not None:
            self.tap.opened(name, base_lsn, opening)
        return SegmentOpened(self.path, header)

    def new_salt(self) -> int:
        return int.from_bytes(self._random(8), "little") | 1

    def must_roll(self, size: int, now_us: int) -> bool:
        if self._handle is None:
            return True
        if self.position <= HEAD_END:
            self._opened_us = max(self._opened_us, now_us)  # its age is that of its first record
            return False
        if self.must_end:
            return True
        return self.position + size > self._bytes_max or now_us - self._opened_us > self._us_max

    def seal(self, next_lsn: int, now_us: int, durable_lsn: int) -> SegmentEnded | None:
        """Seal the active segment: its content is synced before the manifest says so. raises: OSError

        durable_lsn: as of the other chunks: of a group that does not fit, a part may be written and not be synced"""
        if self._handle is None:
            return None
        self._append_bare(SEAL, next_lsn, now_us, durable_lsn)
        if self._allocated > self.position:
            self._files.truncate(self._handle, self.position)
        self.sync()
        self._close()
        self._note(self._end("seal", next_lsn, self.position))
        return SegmentEnded(next_lsn, self.position, self._draft)

    def fence(self, end_lsn: int, logical_end: int) -> SegmentEnded | None:
        """Abandon the active segment: after a failed write or sync, what is behind `logical_end` does not count."""
        if self._handle is None:
            return None
        self._close()
        if self.tap is not None:
            self.tap.irregular()
        self._note(self._end("end", end_lsn, logical_end))
        return SegmentEnded(end_lsn, logical_end, None)

    def discard(self) -> None:
        """Remove the active segment, in which nothing counts yet.

        Where that fails it stays: the segment opened next is the later one. One that the manifest lists is removed only
        after a "drop" edit, else it would be reported missing."""
        self._remove()
        if self.tap is not None:
            self.tap.irregular()

    def _remove(self) -> None:
        self._close()
        try:
            if self._is_known:
                self._owed.append({"edit": "drop", "segment": self._name})
                self._pay()
            self._files.remove(self.path)
        except OSError:
            pass

    @property
    def _name(self) -> str:
        return self.path.rpartition("/")[2]

    def _end(self, kind: str, end_lsn: int, stop: int) -> Edit:
        return {"edit": kind, "segment": self._name, "end_lsn": end_lsn, "stop": stop, "salt": self._salt}

    def _note(self, edit: Edit) -> None:
        """Add an edit that could also be recovered from the segments: a failure is no error, it is retried."""
        self._owed.append(edit)
        try:
            self._pay()
        except OSError:
            pass  # before the next segment is opened

    def _pay(self) -> None:
        while self._owed:
            self._manifest.add(self._owed[0])
            del self._owed[0]

    def note_jumps(self, jumps: list[Jump]) -> None:
        """Add the clock's jumps to the manifest, now or with the next edit that can be written."""
        self._note(clock_edit(jumps))

    def note_packed(self, path: str, end_lsn: int, stop: int, salt: int) -> None:
        """Add to the manifest, now or with the next edit that can be written, that a segment is another file now."""
        name = path.rpartition("/")[2]
        self._note({"edit": "seal", "segment": name, "end_lsn": end_lsn, "stop": stop, "salt": salt})

    def raise_first(self, first_lsn: int) -> None:
        """Add to the manifest that retention removes everything below, before it does. raises: OSError"""
        self._manifest.add({"edit": "first", "lsn": first_lsn})
        if self.tap is not None:
            self.tap.trimmed(first_lsn)

    def close(self) -> None:
        self._close()
        self._manifest.close()

    def _close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                self._files.close(handle)
            except OSError:
                pass  # what counts of it was synced before

    # Preallocation

    def wants_room(self, group_bytes: int) -> bool:
        """Whether zeros should be written ahead. group_bytes: of the group that was written last"""
        left = self._allocated - self.position
        return left <= self._low and self._may_allocate and group_bytes <= GROUP_BYTES_MAX and not self.must_end

    def preallocate(self) -> Preallocated | None:
        """Write zeros ahead of the position, synced; None where there is no room for them.

        raises: OSError, when no more may be written to this segment"""
        if self._handle is None or not self._may_allocate:
            return None
        self._may_allocate = False  # unless it succeeds
        end = max(self.position, self._allocated)
        start = padded(end, SYNC_ALIGN)  # behind a mark it is within a page
        try:
            free_bytes = self._files.space(self._directory).free_bytes
        except OSError:
            return None
        size = piece_bytes(self.position, start, self._bytes_max, free_bytes)
        if not size:
            return None
        try:
            self._files.write_direct(self._handle, self.path, start, ZEROS[:size])
        except OSError as fault:
            if fault.errno not in FULL:
                raise
            # The room is left to records. What fitted is part of the file now.
            self._files.truncate(self._handle, end)
            return None
        self.sync()
        self._allocated, self._low = start + size, size // LOW_PART
        self._may_allocate = True
        return Preallocated(self._allocated)

    # Chunks

    def mark(self, next_lsn: int, now_us: int, durable_lsn: int) -> None:
        """Write a MARK chunk with the durable lsn, so that the last group is covered too.

        It does not end its page, which has no record yet: the next group begins behind it."""
        if self._handle is not None:
            self._append_bare(MARK, next_lsn, now_us, durable_lsn, padded(HEADER_BYTES, ALIGN))

    def _append_bare(self, kind: int, lsn: int, now_us: int, durable_lsn: int, total: int = 0) -> None:
        if not total:
            total = self._rest(HEADER_BYTES, self._small_align)
        self._write(self._layout.bare(kind, lsn, now_us, durable_lsn, total))

    def append(self, chunks: list[Chunk], durable_lsn: int, *, last: bool) -> ChunkPosition:
        """Write memory chunks as one. last: of its sync group, so the next one begins on a page of its own."""
        first = chunks[0]
        direct = bytes_of(chunks) >= self._direct_bytes_min
        if direct and self.position % SYNC_ALIGN:
            self._fill_page(first.base_lsn, first.base_ts, durable_lsn)
        align = SYNC_ALIGN if direct or (last and self.sync_groups) else ALIGN
        laid = self._layout.data(chunks, durable_lsn, align, self.position % align)
        place = ChunkPosition(
            first.base_lsn, self.position, first.base_ts, laid.records, len(laid.data), laid.flags, laid.late
        )
        with laid.data, laid.rows:
            self._write(laid.data, direct=direct)
            self._draft.add(place, self._base_lsn, laid.rows, [], laid.publishers)
        return place

    def lay_out(self, chunks: list[Chunk], durable_lsn: int, place: ChunkPosition) -> Flush:
        """Lay memory chunks out as one that is a group of its own; a segment is open. As `append`, if written.

        place: set to where it will be"""
        first = chunks[0]
        align, flush = self._small_align, self._flush
        ahead = self.position % align
        size = self._layout.small(chunks, durable_lsn, align, ahead)
        if size:
            self._layout.place_small(place, self.position, first, size)
            rows = first.rows if len(chunks) == 1 else self._layout.small_rows()
            self._draft.add(place, self._base_lsn, rows, NOTHING_NEW, NOTHING_NEW)
            flush.set(self.position, self._layout.small_bytes, size)
        else:
            laid = self._layout.data(chunks, durable_lsn, align, ahead)
            size = len(laid.data)
            place.set(first.base_lsn, self.position, first.base_ts, laid.records, size, laid.flags, laid.late)
            with laid.rows:
                self._draft.add(place, self._base_lsn, laid.rows, NOTHING_NEW, laid.publishers)
            flush.set(self.position, laid.data, size)
        if self.tap is not None:
            self.tap.written(self._name, self.position, memoryview(flush.data)[:size])
        self.position += size
        return flush

    def _fill_page(self, lsn: int, now_us: int, durable_lsn: int) -> None:
        """End the page with an empty chunk, so that the next one can bypass the page cache."""
        self._append_bare(MARK, lsn, now_us, durable_lsn, self._rest(HEADER_BYTES, SYNC_ALIGN))

    def _rest(self, size: int, align: int) -> int:
        """Bytes up to the end of the page, or whatever `align` is, in which so many from here on end."""
        return padded(self.position + size, align) - self.position


def bytes_of(chunks: list[Chunk]) -> int:
    """Of their rows and frames."""
    size = 0
    for chunk in chunks:
        size += len(chunk.rows) + len(chunk.frames)
    return size
