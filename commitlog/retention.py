"""What happens to sealed segments: they are indexed, and one day they go. Whole files only; by broker time.

Runs on threads that may wait. A removal is written to the manifest before the first file goes."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from commitlog.files import Files, replace_file
from commitlog.index import index_path, read_segment, write_index
from commitlog.streams import StreamSpec

if TYPE_CHECKING:
    from commitlog.segments import SegmentFile
    from commitlog.writing import SegmentWriter

SNAPSHOT = "topics.snap"
SNAP_MAGIC = b"RUMQSNP1"


class SealJob:
    """Index a sealed segment: from the writer's draft, or from the file."""

    def __init__(self, files: Files, segment: SegmentFile) -> None:
        self._files, self._segment = files, segment

    def run(self) -> None:
        segment = self._segment
        if segment.stop is not None or segment.end_lsn is None:
            return  # not sealed in order: indexed in memory only
        draft, segment.draft = segment.draft, None
        index = draft.finished() if draft is not None else read_segment(self._files, segment.path)[0]
        write_index(self._files, segment.path, index, segment.end_lsn)


def encode_snapshot(names: list[bytes], offsets: array[int], lsn: int) -> bytes:
    """The topics of a partition and the next offset of each, as of `lsn`."""
    body = b"".join(
        struct.pack("<QH", offset, len(name)) + name for offset, name in zip(offsets, names, strict=True)
    )
    head = SNAP_MAGIC + struct.pack("<QI", lsn, len(names))
    return head + body + crc32(head + body).to_bytes(4, "little")


def decode_snapshot(raw: bytes) -> tuple[list[bytes], array[int], int] | None:
    """None when it does not check: the segments say the same."""
    if len(raw) < 24 or raw[:8] != SNAP_MAGIC or crc32(raw[:-4]) != int.from_bytes(raw[-4:], "little"):
        return None
    lsn, count = struct.unpack_from("<QI", raw, 8)
    names: list[bytes] = []
    offsets: array[int] = array("Q")
    at = 20
    for _ in range(count):
        offset, length = struct.unpack_from("<QH", raw, at)
        offsets.append(offset)
        names.append(raw[at + 10 : at + 10 + length])
        at += 10 + length
    return names, offsets, lsn


def segments_to_drop(segments: list[SegmentFile], spec: StreamSpec, now_us: int, files: Files) -> int:
    """How many of the oldest segments may go; the active one never."""
    sealed = [s for s in segments if s.end_lsn is not None]
    drop = 0
    if spec.retention_bytes_max:
        total = sum(s.size for s in segments)
        while drop < len(sealed) and total > spec.retention_bytes_max:
            total -= sealed[drop].size
            drop += 1
    if spec.retention_seconds_max:
        oldest = now_us - spec.retention_seconds_max * 1_000_000
        while drop < len(sealed) and drop + 1 < len(segments):
            following = segments[drop + 1].chunk_places(files)
            # The newest record of a segment is no newer than the first of the next one.
            if not following or following[0].base_ts > oldest:
                break
            drop += 1
    return max(0, min(drop, len(segments) - 1))


class Retention:
    """Remove whole segments: first the dictionary and the promise are saved, then the files go."""

    def __init__(
        self,
        files: Files,
        directory: str,
        writer: SegmentWriter,
        paths: list[str],
        first_lsn: int,
        snapshot: bytes,
    ) -> None:
        self._files, self._directory, self._writer = files, directory, writer
        self.paths, self.first_lsn, self._snapshot = paths, first_lsn, snapshot
        self.done = False

    def run(self) -> None:
        # Topics whose last record goes must keep their numbers.
        replace_file(self._files, f"{self._directory}/{SNAPSHOT}", self._snapshot)
        self._writer.raise_first(self.first_lsn)
        for path in self.paths:
            for name in (path, index_path(path)):
                if self._files.exists(name):
                    self._files.remove(name)
        self.done = True
