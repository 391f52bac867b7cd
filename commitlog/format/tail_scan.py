"""Find the logical end of a segment that was not sealed: after a kill, a power loss, or damage.

docs/reference/log-format.md, "Recovery". Reads only; the same file always gives the same result."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.chunk import HEADER_BYTES, SEAL, Gap
from commitlog.disk.files import Files
from commitlog.format.segment import HOLDS_RECORDS, SEGMENT_HEADER_BYTES, body_fault, probe, walk


class Tail(NamedTuple):
    """logical_end, end_lsn: the byte and the lsn where the valid part ends; gaps: unreadable records;
    sealed: its SEAL chunk ends it; proved_lsn: the highest committed mark in it"""

    logical_end: int
    end_lsn: int
    gaps: list[Gap]
    sealed: bool
    proved_lsn: int


class Prefix(NamedTuple):
    """The whole chunks from a segment's start on. chain: the last one's header CRC; proved_lsn, sealed: as of `Tail`"""

    stop: int
    end_lsn: int
    chain: int
    sealed: bool
    proved_lsn: int


def whole_prefix(files: Files, handle: int, salt: int, size: int, base_lsn: int, limit_lsn: int | None) -> Prefix:
    """Check every chunk of a segment, including bodies, up to the first invalid one. limit_lsn: as of `examine`"""
    stop, reached, chain, proved = SEGMENT_HEADER_BYTES, base_lsn, 0, base_lsn
    for at, header in walk(files, handle, salt, SEGMENT_HEADER_BYTES, size):
        if header.chain != chain or header.base_lsn != reached:
            break
        if limit_lsn is not None and header.next_lsn > limit_lsn:
            break
        if header.body_len and body_fault(header, files.read(handle, at + HEADER_BYTES, header.body_len)):
            break
        proved = max(proved, header.durable_lsn)
        chain, reached = header.crc, header.next_lsn
        stop = at + header.total_len
        if header.kind == SEAL:
            return Prefix(stop, reached, chain, True, proved)
    return Prefix(stop, reached, chain, False, proved)


def examine(files: Files, handle: int, path: str, salt: int, size: int, base_lsn: int, limit_lsn: int | None) -> Tail:
    """Check every chunk of a segment, including bodies. limit_lsn: start of a later segment, which has the rest.

    Whole chunks up to the first invalid one are kept. The rest was never acknowledged (it is torn), unless a mark or a
    later segment shows otherwise: then every later whole chunk is kept too, and the missing records are a gap.
    """
    stop, reached, _, sealed, proved = whole_prefix(files, handle, salt, size, base_lsn, limit_lsn)
    if sealed:
        return Tail(stop, reached, [], True, reached)
    later = list(probe(files, handle, salt, stop, size))
    proved = max([proved, *(h.durable_lsn for _, h in later)])
    promised = proved if limit_lsn is None else limit_lsn
    gaps = []
    if promised > reached:
        for at, header in later:
            if header.kind not in HOLDS_RECORDS or not header.count or header.base_lsn < reached:
                continue
            if limit_lsn is not None and header.next_lsn > limit_lsn:
                continue
            if header.base_lsn > reached:
                gaps.append(Gap(reached, header.base_lsn, f"{path}: damaged at byte {stop}"))
            reached, stop = header.next_lsn, at + header.total_len
        if promised > reached:
            gaps.append(Gap(reached, promised, f"{path}: damaged at byte {stop}"))
            reached = promised
    return Tail(stop, reached, gaps, False, proved)
