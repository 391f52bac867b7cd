"""The write side of a partition: append chunks; open, seal or abandon segments. docs/log-format.md.

Runs on the I/O thread and shares no mutable state with the loop thread. One function writes, one syncs. The time is
that of the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import NamedTuple

from commitlog.chunk import (
    ALIGN,
    DATA,
    FLAG_TOPICS,
    HEADER_BYTES,
    ITEMS_MAX,
    MARK,
    SEAL,
    SYNC_ALIGN,
    Buffer,
    Chunk,
    encode_header,
    encode_packed,
    last_of_each,
    padded,
)
from commitlog.clock_guard import Jump
from commitlog.files import Files
from commitlog.index import IndexBuilder
from commitlog.kernels import rows as kernel
from commitlog.kernels import topics as topics_kernel
from commitlog.manifest import Edit, Manifest, clock_edit
from commitlog.row_layout import PUBLISHER_WORD, ROW_BYTES
from commitlog.segment import SEGMENT_HEADER_BYTES, ChunkPosition, SegmentHeader, encode_segment_header

BUFFER_BYTES = 1 << 21
BUFFER_KEPT_MAX = 1 << 24


class Names(NamedTuple):
    """The partition's dictionaries, which only grow: number -> name."""

    topics: list[bytes]
    publishers: list[bytes]


class Opened(NamedTuple):
    """A segment that now exists."""

    path: str
    header: SegmentHeader


class Ended(NamedTuple):
    """A segment that is finished: sealed and synced, or given up. logical_end: the byte behind its last chunk that
    counts; draft: of its index, None when given up."""

    end_lsn: int
    logical_end: int
    draft: IndexBuilder | None


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
    """The active segment of one partition."""

    def __init__(
        self, files: Files, directory: str, options: SegmentOptions, *, names: Names, manifest: Manifest,
        random: Callable[[int], bytes],
    ) -> None:  # fmt: skip
        self._options = options
        self._direct_bytes_min = options.direct_bytes_min
        self._buffer = mmap(-1, BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS)
        self._files = files
        self._directory = directory
        self._generation, self._epoch = options.generation, options.epoch
        self.sync_groups = options.sync_groups
        self._bytes_max, self._us_max = options.bytes_max, options.us_max
        self._names = names
        self._manifest = manifest
        self._random = random
        self._handle: int | None = None
        self.path = ""
        self._salt = 0
        self._opened_us = 0
        self.position = 0
        self._chain = 0
        self._base_lsn = 0
        self._draft = IndexBuilder()
        self._seen_topics = bytearray()
        self._seen_publishers = bytearray()
        self._told_topics: list[tuple[int, bytes]] = []  # as entries of aux
        self._told_publishers: list[tuple[int, bytes]] = []
        self._owed: list[Edit] = []
        self.must_end = False  # the next group goes to another segment
        self._is_known = False  # the manifest may have an `open` of the active segment

    # One function writes, one syncs

    def _write(self, data: Buffer, *, direct: bool = False) -> None:
        assert self._handle is not None
        if direct:
            self._files.write_direct(self._handle, self.path, self.position, memoryview(data))
        else:
            self._files.write(self._handle, self.position, [data])
        self.position += len(data)

    def sync(self) -> None:
        if self._handle is not None:
            self._files.sync(self._handle)

    # Segments

    def open_segment(self, base_lsn: int, now_us: int) -> Opened:
        """Open a new segment; it is on disk and in the manifest before a chunk is written to it. raises: OSError"""
        uuid = self._random(16)
        salt = int.from_bytes(self._random(8), "little") | 1
        # Of two segments with the same base lsn, the time tells which was the later one.
        self._opened_us = max(now_us, self._opened_us + 1)
        header = SegmentHeader(
            self._generation, self._options.number, self._options.stream, uuid, salt, base_lsn, self._opened_us,
            self._epoch, self._options.boot_id,
        )  # fmt: skip
        name = f"{base_lsn:020d}-{uuid.hex()[:8]}.seg"
        self.path = f"{self._directory}/{name}"
        self._handle = self._files.create(self.path)
        self.position, self._is_known = 0, False
        try:
            self._write(encode_segment_header(header))
            self.sync()
            self._files.sync_directory(self._directory)
            self._pay()
            self._is_known = True
            self._manifest.add({"edit": "open", "segment": name, "base_lsn": base_lsn})
        except Exception:
            self.discard()
            raise
        self.must_end = False
        self._salt, self._chain = salt, 0
        self._base_lsn, self._draft = base_lsn, IndexBuilder(self._names.topics)
        self._seen_topics = bytearray(len(self._names.topics) + 1024)
        self._seen_publishers = bytearray(len(self._names.publishers) + 1024)
        self._told_topics, self._told_publishers = [], []
        return Opened(self.path, header)

    def must_roll(self, size: int, now_us: int) -> bool:
        if self._handle is None:
            return True
        if self.position <= SEGMENT_HEADER_BYTES:
            self._opened_us = max(self._opened_us, now_us)  # its age is that of its first record
            return False
        if self.must_end:
            return True
        return self.position + size > self._bytes_max or now_us - self._opened_us > self._us_max

    def seal(self, next_lsn: int, now_us: int, durable_lsn: int) -> Ended | None:
        """Seal the active segment: its content is synced before the manifest says so. raises: OSError

        durable_lsn: as of the other chunks: of a group that does not fit, a part may be written and not be synced"""
        if self._handle is None:
            return None
        self._append_bare(SEAL, next_lsn, now_us, durable_lsn)
        self.sync()
        self._close()
        self._note({"edit": "seal", "segment": self._name, "end_lsn": next_lsn, "stop": self.position})
        return Ended(next_lsn, self.position, self._draft)

    def fence(self, end_lsn: int, logical_end: int) -> Ended | None:
        """Abandon the active segment: after a failed write or sync, what is behind `logical_end` does not count."""
        if self._handle is None:
            return None
        self._close()
        self._note({"edit": "end", "segment": self._name, "end_lsn": end_lsn, "stop": logical_end})
        return Ended(end_lsn, logical_end, None)

    def discard(self) -> None:
        """Remove the active segment, in which nothing counts yet.

        Where that fails it stays: the segment opened next is the later one. One that the manifest lists is removed only
        after a "drop" edit, else it would be reported missing."""
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

    def raise_first(self, first_lsn: int) -> None:
        """Add to the manifest that retention removes everything below, before it does. raises: OSError"""
        self._manifest.add({"edit": "first", "lsn": first_lsn})

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

    # Chunks

    def mark(self, next_lsn: int, now_us: int, durable_lsn: int) -> None:
        """Write a MARK chunk with the durable lsn, so that the last group is covered too."""
        if self._handle is not None:
            self._append_bare(MARK, next_lsn, now_us, durable_lsn)

    def _append_bare(self, kind: int, lsn: int, now_us: int, durable_lsn: int, total: int = 0) -> None:
        if not total:
            total = padded(HEADER_BYTES, SYNC_ALIGN if self.sync_groups else ALIGN)
        raw, crc = encode_header(
            kind, 0, self._salt, lsn, 0, b"", b"", b"", total, now_us, durable_lsn, 0, self._epoch, self._chain,
            0, 0, self._generation,
        )  # fmt: skip
        self._write(raw + bytes(total - HEADER_BYTES))
        self._chain = crc

    def append(self, chunks: list[Chunk], durable_lsn: int, *, last: bool) -> ChunkPosition:
        """Write memory chunks as one. last: of its sync group, so the next one begins on a page of its own."""
        first = chunks[0]
        rows_len = sum(len(chunk.rows) for chunk in chunks)
        frames_len = sum(len(chunk.frames) for chunk in chunks)
        direct = rows_len + frames_len >= self._direct_bytes_min
        if direct and self.position % SYNC_ALIGN:
            self._fill_page(first.base_lsn, first.base_ts, durable_lsn)
        buffer = self._room(HEADER_BYTES + rows_len + frames_len)
        rows_end = HEADER_BYTES + rows_len
        rows = memoryview(buffer)[HEADER_BYTES:rows_end]
        flags, tags = kernel.lay_out(chunks, buffer, rows_end)
        low, high, late = kernel.bounds(rows)
        topics = self._new_topics(rows)
        publishers = self._new_publishers(rows)
        sources = last_of_each(b"".join([chunk.sources for chunk in chunks]))
        # Each name is in two chunks: none is lost with the chunk that used it first.
        aux = encode_packed(self._told_topics + topics, self._told_publishers + publishers, tags, sources)
        self._told_topics, self._told_publishers = topics, publishers
        if topics:
            flags |= FLAG_TOPICS
        count = rows_len // ROW_BYTES
        size = rows_end + frames_len + len(aux)
        total = padded(size, SYNC_ALIGN if direct or (last and self.sync_groups) else ALIGN)
        raw, crc = encode_header(
            DATA, flags, self._salt, first.base_lsn, count, rows, memoryview(buffer)[rows_end : rows_end + frames_len],
            aux, total, first.base_ts, durable_lsn, late, self._epoch, self._chain, low, high, self._generation,
        )  # fmt: skip
        place = ChunkPosition(first.base_lsn, self.position, first.base_ts, count, total, flags, late)
        rows.release()
        buffer = self._room(total)
        buffer[:HEADER_BYTES] = raw
        buffer[size - len(aux) : size] = aux
        buffer[size:total] = bytes(total - size)
        with memoryview(buffer) as view, view[:total] as whole:
            self._write(whole, direct=direct)
            self._draft.add(place, self._base_lsn, whole[HEADER_BYTES:rows_end], [], publishers)
        self._chain = crc
        if len(buffer) > BUFFER_KEPT_MAX:
            self._buffer = mmap(-1, BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS)
        return place

    def _fill_page(self, lsn: int, now_us: int, durable_lsn: int) -> None:
        """End the page with an empty chunk, so that the next one can bypass the page cache."""
        missing = padded(self.position + HEADER_BYTES, SYNC_ALIGN) - self.position
        self._append_bare(MARK, lsn, now_us, durable_lsn, missing)

    def _room(self, size: int) -> mmap:
        """The buffer in which chunks are laid out, page aligned, with at least `size` bytes; keeps what is in it."""
        if len(self._buffer) < size:
            larger = mmap(-1, padded(size + size // 4, SYNC_ALIGN), MAP_PRIVATE | MAP_ANONYMOUS)
            larger[: len(self._buffer)] = self._buffer[:]
            self._buffer = larger
        return self._buffer

    def _new_topics(self, rows: Buffer) -> list[tuple[int, bytes]]:
        names = self._names.topics
        grow(self._seen_topics, len(names))
        found: list[tuple[int, bytes]] = topics_kernel.told(rows, self._seen_topics, names, ITEMS_MAX)
        return found

    def _new_publishers(self, rows: Buffer) -> list[tuple[int, bytes]]:
        names = self._names.publishers
        grow(self._seen_publishers, len(names))
        found = kernel.first_seen(rows, PUBLISHER_WORD, self._seen_publishers)
        return [(number, names[number]) for number, _ in found if number]


def grow(seen: bytearray, wanted: int) -> None:
    if len(seen) < wanted:
        seen.extend(bytes(wanted - len(seen) + 1024))
