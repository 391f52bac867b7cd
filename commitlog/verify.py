"""Check a data directory completely: every checksum, the chain of chunks, the density of both numbers.

Takes no lock, writes nothing, works beside a running broker. What it finds are plain facts with their exact range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from commitlog.chunk import HEADER_BYTES, SEAL, maybe_header, split_body
from commitlog.errors import Damaged
from commitlog.files import Files
from commitlog.index import decode_index, encode_index, index_path, read_segment
from commitlog.reader import LogReader, PartitionView, SegmentView
from commitlog.segment import HOLDS_RECORDS, SEGMENT_HEADER_BYTES, body_fault


@dataclass(frozen=True)
class Finding:
    """One fact. severity: "damage" loses the records named, "notice" loses nothing."""

    severity: str
    partition: str
    where: str
    what: str
    base_lsn: int = 0
    next_lsn: int = 0


def verify(files: Files, root: str) -> Iterator[Finding]:
    """Everything that is wrong, partition by partition; nothing when all is sound."""
    for view in LogReader(files, root).partitions():
        yield from verify_partition(files, view)


def verify_partition(files: Files, view: PartitionView) -> Iterator[Finding]:
    for problem in view.unreadable:
        yield Finding("damage", view.name, view.directory, problem)
    expected = view.first_lsn
    offsets: dict[int, int] = {}
    for segment in view.segments():
        if segment.base_lsn > expected:
            yield Finding(
                "damage", view.name, segment.path, "no segment has these records", expected, segment.base_lsn
            )
        yield from verify_segment(files, view, segment, offsets)
        expected = max(expected, segment.end_lsn)
        if segment.sealed:
            yield from verify_index(files, view, segment)


def verify_segment(
    files: Files, view: PartitionView, segment: SegmentView, offsets: dict[int, int]
) -> Iterator[Finding]:
    """Walk the chunks one by one, by what each header says of the next."""
    handle = files.open(segment.path)
    try:
        position, chain, lsn = SEGMENT_HEADER_BYTES, 0, segment.base_lsn
        while lsn < segment.end_lsn or position < segment.bytes:
            header = maybe_header(files.read(handle, position, HEADER_BYTES), segment.salt)
            where = f"{segment.path} at {position}"
            if header is None:
                if lsn < segment.end_lsn:
                    yield Finding("damage", view.name, where, "no chunk begins here", lsn, segment.end_lsn)
                elif segment.sealed:
                    yield Finding(
                        "notice", view.name, where, f"{segment.bytes - position} bytes behind the seal"
                    )
                return
            if header.chain != chain:
                yield Finding(
                    "damage", view.name, where, "it does not follow the chunk before it", lsn, header.base_lsn
                )
            if header.base_lsn != lsn:
                yield Finding(
                    "damage", view.name, where, "records are missing before it", lsn, header.base_lsn
                )
            if header.base_lsn >= segment.end_lsn and header.kind in HOLDS_RECORDS:
                return  # not known to be committed: not part of what can be read
            body = files.read(handle, position + HEADER_BYTES, header.body_len)
            fault = body_fault(header, body)
            if fault is not None:
                yield Finding("damage", view.name, where, fault, header.base_lsn, header.next_lsn)
            elif header.kind in HOLDS_RECORDS:
                yield from verify_offsets(view, where, header.base_lsn, split_body(header, body)[0], offsets)
            chain, lsn = header.crc, header.next_lsn
            position += header.total_len
            if header.kind == SEAL:
                return
    finally:
        files.close(handle)


def verify_offsets(
    view: PartitionView, where: str, base_lsn: int, rows: memoryview, offsets: dict[int, int]
) -> Iterator[Finding]:
    """Each topic's offsets follow one another."""
    words = rows.cast("I")
    for row in range(len(words) // 8):
        topic, offset = words[row * 8], words[row * 8 + 2] | words[row * 8 + 3] << 32
        known = offsets.get(topic)
        if known is not None and offset != known + 1:
            what = f"topic {topic} goes from offset {known} to {offset}"
            yield Finding("damage", view.name, where, what, base_lsn + row, base_lsn + row + 1)
        offsets[topic] = offset


def verify_index(files: Files, view: PartitionView, segment: SegmentView) -> Iterator[Finding]:
    """The index says what the segment says; if not it is made again, and nothing is lost."""
    path = index_path(segment.path)
    if not files.exists(path):
        yield Finding("notice", view.name, path, "there is no index yet: searches read the segment")
        return
    handle = files.open(path)
    try:
        raw = files.read(handle, 0, files.size(path))
        decode_index(raw, path)
    except Damaged as damage:
        yield Finding("notice", view.name, path, damage.what)
        return
    finally:
        files.close(handle)
    index, end_lsn = read_segment(files, segment.path)
    if crc32(encode_index(index, end_lsn)) != crc32(raw):
        yield Finding("notice", view.name, path, "the index does not say what its segment says")
