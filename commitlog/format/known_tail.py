"""What is known of the segment at the end of a log that was read as it was written: recovery need not read it again."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from commitlog.checksum import crc32
from commitlog.chunk import HEADER_BYTES, Header, decode_aux, maybe_header, split_body
from commitlog.disk.files import Files
from commitlog.format.segment import HOLDS_RECORDS, SEGMENT_HEADER_BYTES, opening, place_of
from commitlog.kernels import rows as kernel

READ_BYTES = 1 << 18  # at once: some thousand small chunks, a few milliseconds
WAITS_BYTES = 1 << 16  # less is not worth opening the file for
TOPICS_MAX = 1 << 26


class KnownTail(NamedTuple):
    """The last segment, which nothing ends. name: of its file; end_lsn, stop: behind its last chunk
    last_ts: of the newest record up to there, 0: unknown; names, publishers: that it tells, by number
    following: the next offset of each topic that it has, by topic id, 0: of others"""

    name: str
    end_lsn: int
    stop: int
    last_ts: int
    names: dict[int, bytes]
    publishers: dict[int, bytes]
    following: array[int]


class TailReader:
    """Reads the last segment of a partition behind those who write it, a piece at a time."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files, self._directory = files, directory
        self._last_ts = 0
        self.begin("")

    def begin(self, name: str) -> None:
        """Anew: of another segment, or after a cut."""
        self._name, self._salt, self._stop, self._end_lsn = name, -1, SEGMENT_HEADER_BYTES, 0
        self._is_sound = True
        self._names: dict[int, bytes] = {}
        self._publishers: dict[int, bytes] = {}
        self._following: array[int] = array("Q")
        self._topics_end = 0

    def read_on(self, name: str, stop: int, least: int = WAITS_BYTES) -> bool:
        """Read a piece, if there are so many bytes. name, stop: of the segment now. returns: whether to call again

        raises: OSError"""
        if name != self._name:
            self.begin(name)
        if not name or not self._is_sound or stop - self._stop < max(1, least):
            return False
        handle = self._files.open(f"{self._directory}/{name}")
        try:
            if self._salt < 0:
                self._salt = opening(self._files, handle, name).header.salt
            self._is_sound = self._read(handle, stop)
        finally:
            self._files.close(handle)
        return self._is_sound and stop - self._stop >= max(1, least)

    def maybe_known(self, name: str, stop: int) -> KnownTail | None:
        """Everything, once the rest is read; None: it must be recovered. raises: OSError"""
        while self.read_on(name, stop, 1):
            pass
        if not name or not self._is_sound or self._stop != stop or not self._end_lsn:
            return None
        return KnownTail(
            name,
            self._end_lsn,
            stop,
            self._last_ts,
            self._names,
            self._publishers,
            self._following[: self._topics_end],
        )

    def _read(self, handle: int, stop: int) -> bool:
        """Whether all of a piece is what a writer has written."""
        data = self._files.read(handle, self._stop, min(stop - self._stop, READ_BYTES))
        at = 0
        while at + HEADER_BYTES <= len(data):
            header = maybe_header(data[at : at + HEADER_BYTES], self._salt)
            if header is None:
                return False
            end = at + header.total_len
            if end > len(data):
                if at:
                    break
                data = self._files.read(handle, self._stop, header.total_len)
                if end > len(data):
                    return False
            if not self._take(self._stop + at, header, data[at + HEADER_BYTES : end]):
                return False
            at = end
        self._stop += at
        return at > 0

    def _take(self, position: int, header: Header, body: bytes) -> bool:
        rows, _, aux = split_body(header, body)
        if crc32(rows) != header.rows_crc or crc32(aux) != header.aux_crc:
            return False
        if header.aux_len:
            told = decode_aux(aux)
            self._names.update((number, name) for number, _, name in told.topics)
            self._publishers.update(told.publishers)
        self._end_lsn = header.next_lsn
        if header.kind not in HOLDS_RECORDS or not header.count:
            return True
        self._last_ts = place_of(position, header).last_ts
        _, highest = kernel.topic_column(rows)
        if highest >= len(self._following):
            if highest >= TOPICS_MAX:
                return False
            self._following.frombytes(bytes(8 * (highest + 1024 - len(self._following))))
        self._topics_end = max(self._topics_end, highest + 1)
        kernel.follow(rows, self._following)
        return True
