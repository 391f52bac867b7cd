"""Check the chunks that a leader sent, before anything of them is written. docs/reference/log-format.md, "Chunk".

The same checks as those of a scan (`tail_scan`): what is written is what a recovery would keep. Knows no
file."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.chunk import HEADER_BYTES, SEAL, Buffer, maybe_header
from commitlog.errors import Damaged
from commitlog.format.segment import body_fault


class Checked(NamedTuple):
    """Behind the last chunk. chain: its header's CRC; is_sealed: it ends the segment"""

    next_lsn: int
    chain: int
    is_sealed: bool


def checked(data: Buffer, salt: int, chain: int, next_lsn: int, where: str, position: int) -> Checked:
    """Whole chunks that continue a segment. chain: of the chunk before them, 0: they begin the segment

    where, position: of the segment, and the byte in it, for the error. raises: Damaged"""
    view = memoryview(data)
    at, size, is_sealed = 0, len(view), False
    if not size:
        raise Damaged(where, "no chunk was sent")
    while at < size:
        header = maybe_header(bytes(view[at : at + HEADER_BYTES]), salt)
        if header is None:
            raise refused(where, position + at, "the chunk's header is damaged, or of another segment")
        if is_sealed:
            raise refused(where, position + at, "a chunk behind the one that seals the segment")
        end = at + header.total_len
        if end > size:
            raise refused(where, position + at, f"only {size - at} of the chunk's {header.total_len} bytes were sent")
        if header.chain != chain:
            raise refused(where, position + at, "the chunk does not follow the one before it")
        if header.base_lsn != next_lsn:
            raise refused(where, position + at, f"the chunk begins at lsn {header.base_lsn}, and {next_lsn} is next")
        if header.body_len:
            fault = body_fault(header, view[at + HEADER_BYTES : end])
            if fault is not None:
                raise refused(where, position + at, f"the chunk is damaged: {fault}")
        chain, next_lsn = header.crc, header.next_lsn
        is_sealed = header.kind == SEAL
        at = end
    return Checked(next_lsn, chain, is_sealed)


def refused(where: str, position: int, what: str) -> Damaged:
    return Damaged(f"{where} at {position}", f"{what}; nothing of it was written")
