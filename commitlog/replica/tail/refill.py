"""The last segment of a copy is sent as another file: it is written beside the one that is there, until it has as much.

So a copy keeps what it has acknowledged while its leader, which has packed the segment, sends it anew. At every moment
a recovery finds the one file or the other. Blocking, for the thread of `mirror_partition`.
docs/reference/log-format.md, "Packing" """

from __future__ import annotations

from commitlog.chunk import Buffer
from commitlog.disk.files import Files, remove_if_possible
from commitlog.errors import LogError
from commitlog.format.segment import REFILLED, SegmentHeader
from commitlog.index.index import index_path
from commitlog.replica.tail.chunk_check import checked
from commitlog.replica.tail.tail_segment import TailSegment, created_tail


class Refill:
    """name: of the segment; end_lsn: what it has when it may take the place of the file that is there
    next_lsn: behind what was sent"""

    def __init__(self, files: Files, directory: str, name: str, end_lsn: int) -> None:
        self._files, self._directory = files, directory
        self.name, self.end_lsn, self.next_lsn = name, end_lsn, 0
        self._path = f"{directory}/{name}"
        self._tail: TailSegment | None = None

    @property
    def is_begun(self) -> bool:
        return self._tail is not None

    @property
    def is_whole(self) -> bool:
        return self._tail is not None and self.next_lsn >= self.end_lsn

    @property
    def position(self) -> int:
        return 0 if self._tail is None else self._tail.position

    def begin(self, name: str, header: SegmentHeader, raw: bytes) -> None:
        """A segment is sent. raw: the header's bytes. raises: LogError: another one; OSError"""
        self._require(name)
        self.discard()
        path = self._path + REFILLED
        if self._files.exists(path):
            self._files.remove(path)
        self._tail = created_tail(self._files, path, header, raw)
        self.next_lsn = header.base_lsn

    def write(self, name: str, position: int, data: Buffer) -> None:
        """Whole chunks. raises: LogError, Damaged: nothing was written then; OSError"""
        self._require(name)
        tail = self._tail
        if tail is None or position != tail.position or tail.is_sealed:
            raise LogError(f"chunks for byte {position} of {self._path} were sent, which ends at {self.position}")
        found = checked(data, tail.header.salt, tail.chain, self.next_lsn, tail.path, position)
        tail.write(data, found.chain)
        tail.is_sealed, self.next_lsn = found.is_sealed, found.next_lsn

    def _require(self, name: str) -> None:
        if name != self.name:
            raise LogError(f"{name} was sent, and {self._path} is to be sent again before")

    def sync(self) -> None:
        """raises: OSError"""
        if self._tail is not None and self._tail.is_dirty:
            self._tail.sync()

    def take_place(self) -> TailSegment:
        """Put it in the place of the segment, when it is whole: by a rename. raises: OSError"""
        tail = self._tail
        assert tail is not None
        files, path = self._files, self._path
        tail.sync()
        if files.exists(index_path(path)):  # of the file before
            files.remove(index_path(path))
        files.rename(tail.path, path)
        files.sync_directory(self._directory)
        tail.path, tail.name = path, self.name
        self._tail = None
        return tail

    def discard(self) -> None:
        """What was sent counts no more."""
        if self._tail is not None:
            path = self._tail.path
            self.close()
            remove_if_possible(self._files, path)

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None
