"""Consecutive small chunks as fewer larger ones, for readers: a message that came alone is a chunk of its own.

What a reader pays for a chunk (a look-up, a match, an encoding, an entry of the session journal) it pays for many
records then. Knows no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from commitlog.chunk import HEADER_BYTES, Chunk, Gap, last_of_each
from commitlog.format.chunk_layout import MERGED_BYTES_MAX, pieced
from commitlog.kernels.rows import lay_out


def joined(chunks: Iterable[Chunk | Gap], bytes_max: int = MERGED_BYTES_MAX) -> Iterator[Chunk | Gap]:
    """The same records in order, in chunks of up to `bytes_max`; a larger chunk is left as it is. Cost: a copy"""
    run: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, Chunk) and (not run or run[-1].next_lsn == chunk.base_lsn):
            run.append(chunk)
            continue
        for piece in pieced(run, bytes_max):
            yield as_one(piece)
        run = []
        if isinstance(chunk, Chunk):
            run.append(chunk)
        else:
            yield chunk
    for piece in pieced(run, bytes_max):
        yield as_one(piece)


def as_one(chunks: list[Chunk]) -> Chunk:
    """One chunk of the records of consecutive chunks."""
    if len(chunks) == 1:
        return chunks[0]
    rows_end = HEADER_BYTES + sum(len(chunk.rows) for chunk in chunks)
    end = rows_end + sum(len(chunk.frames) for chunk in chunks)
    buffer = bytearray(end + -end % 4)  # the kernel sees words
    flags, tags = lay_out(chunks, buffer, rows_end)
    first, last = chunks[0], chunks[-1]
    view = memoryview(buffer)
    sources = last_of_each(b"".join([chunk.sources for chunk in chunks]))
    return Chunk(
        first.base_lsn, last.next_lsn - first.base_lsn, first.base_ts, flags, view[HEADER_BYTES:rows_end],
        view[rows_end:end], tags, sources,
    )  # fmt: skip
