"""The segment file at the end of a copy: written, synced, given zeros ahead, cut off.

docs/reference/log-format.md, "Segment".
Knows no manifest. After an OSError nothing more may be written to it: what it has is unknown until it is read anew."""

from __future__ import annotations

from commitlog.chunk import SYNC_ALIGN, Buffer, padded
from commitlog.disk.files import Files, remove_if_possible
from commitlog.disk.os_errors import FULL
from commitlog.disk.preallocation import GROUP_BYTES_MAX, LOW_PART, ZEROS, data_end, piece_bytes
from commitlog.errors import Damaged
from commitlog.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, opening, walk


class TailSegment:
    """position: behind its last chunk; chain: that one's header CRC; is_dirty: written since the last sync

    is_ragged: bytes behind the position are neither chunks nor zeros: a torn tail, or what was abandoned"""

    __slots__ = (
        "_allocated", "_files", "_handle", "_last_bytes", "_low", "_may_allocate", "_synced", "chain", "header",
        "is_dirty", "is_ragged", "is_sealed", "name", "path", "position",
    )  # fmt: skip

    def __init__(self, files: Files, path: str, header: SegmentHeader, handle: int) -> None:
        """Of a file with nothing but a header, which is not synced."""
        self._files, self._handle = files, handle
        self.path, self.name, self.header = path, path.rpartition("/")[2], header
        self.position, self.chain = SEGMENT_HEADER_BYTES, 0
        self._synced = 0
        self._allocated = self._low = self._last_bytes = 0
        self._may_allocate = True
        self.is_dirty = self.is_ragged = self.is_sealed = False

    def write(self, data: Buffer, chain: int) -> None:
        """Checked chunks. chain: of the last one. raises: OSError"""
        self._files.write(self._handle, self.position, [data])
        self.position += len(data)
        self.chain, self.is_dirty = chain, True
        self._last_bytes = len(data)

    def sync(self) -> None:
        """raises: OSError"""
        try:
            self._files.sync(self._handle)
        except OSError:
            self._forget_unsynced()
            raise
        self._synced = self.position
        self.is_dirty = False

    def _forget_unsynced(self) -> None:
        """After a failed sync the page cache may have what the disk has not, and the next sync would not tell."""
        try:
            self._files.truncate(self._handle, self._synced)
        except OSError:
            pass

    def give_back(self) -> None:
        """Cut off what is behind the position; durable with the next sync. raises: OSError"""
        if self._allocated > self.position or self.is_ragged:
            self._files.truncate(self._handle, self.position)
            self.is_dirty = True
        self._allocated = self._low = 0
        self.is_ragged = False

    def wants_room(self) -> bool:
        """Whether zeros should be written ahead; what comes in large pieces gains nothing by them."""
        left = self._allocated - self.position
        is_due = left <= self._low and self._may_allocate and 0 < self._last_bytes <= GROUP_BYTES_MAX
        return is_due and not self.is_sealed

    def make_room(self, directory: str, segment_bytes_max: int) -> None:
        """Write zeros ahead of the position, synced, as far as there is room for them. raises: OSError"""
        self._may_allocate = False  # unless it succeeds
        end = max(self.position, self._allocated)
        start = padded(end, SYNC_ALIGN)  # behind a mark it is within a page
        try:
            free_bytes = self._files.space(directory).free_bytes
        except OSError:
            return
        size = piece_bytes(self.position, start, segment_bytes_max, free_bytes)
        if not size:
            return
        try:
            self._files.write_direct(self._handle, self.path, start, ZEROS[:size])
        except OSError as fault:
            if fault.errno not in FULL:
                raise
            self._files.truncate(self._handle, end)
            return
        self.sync()
        self._allocated, self._low = start + size, size // LOW_PART
        self._may_allocate = True

    def look_behind(self) -> None:
        """See what the file has behind the position. Cost: reads it. raises: OSError"""
        size = self._files.size(self.path)
        self.is_ragged = data_end(self._files, self._handle, self.position, size) > self.position
        self._allocated = 0 if self.is_ragged else size

    def close(self) -> None:
        try:
            self._files.close(self._handle)
        except OSError:
            pass  # what counts of it was synced before


def created_tail(files: Files, path: str, header: SegmentHeader, raw: bytes) -> TailSegment:
    """A new segment, on disk. raw: its header's bytes. raises: OSError; it is removed then, if that is possible"""
    handle = files.create(path)
    tail = TailSegment(files, path, header, handle)
    try:
        files.write(handle, 0, [raw])
        tail.sync()
        files.sync_directory(path.rpartition("/")[0])
    except OSError:
        tail.close()
        remove_if_possible(files, path)
        raise
    return tail


def opened_tail(files: Files, path: str, stop: int, end_lsn: int) -> TailSegment:
    """A segment that is to be written from byte `stop` on, where lsn `end_lsn` is next. Cost: reads its chunk headers

    raises: OSError; Damaged where no chunk ends there"""
    handle = files.open(path, write=True)
    try:
        header = opening(files, handle, path).header
        tail = TailSegment(files, path, header, handle)
        reached = header.base_lsn
        for at, chunk in walk(files, handle, header.salt, SEGMENT_HEADER_BYTES, stop):
            tail.position, tail.chain, reached = at + chunk.total_len, chunk.crc, chunk.next_lsn
        if (tail.position, reached) != (stop, end_lsn):
            raise Damaged(f"{path} at {stop}", f"no chunk ends here before lsn {end_lsn}; it was left as it is")
        tail._synced = stop
        tail.look_behind()
    except BaseException:
        files.close(handle)
        raise
    return tail


def stop_before(files: Files, path: str, salt: int, stop: int, end_lsn: int) -> int:
    """The byte at which records before an lsn end, chunks without records included; 0: a chunk goes beyond.

    salt, stop: of the file. Cost: reads its chunk headers. raises: OSError"""
    found, reached = 0, -1
    handle = files.open(path)
    try:
        for at, chunk in walk(files, handle, salt, SEGMENT_HEADER_BYTES, stop):
            if chunk.next_lsn > end_lsn:
                break
            found, reached = at + chunk.total_len, chunk.next_lsn
    finally:
        files.close(handle)
    return found if reached == end_lsn else 0
