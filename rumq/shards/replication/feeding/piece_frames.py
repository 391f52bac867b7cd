"""Frames of what a partition's writer has told: encoded once, and shared by all followers."""
# compiled: hot

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rumq.cluster.replication.messages import Open, Write
from rumq.net.frames import Raw, encode
from rumq.shards.replication.feeding.copied_partition import CopyPiece

WRITE_BYTES_MAX = 4 << 20


class Frames(NamedTuple):
    """parts: the buffers to send, in order; size: of them in bytes"""

    parts: list[Raw]
    size: int


def frames_of(pieces: Sequence[CopyPiece], epoch: int, partition: str) -> Frames:
    """Chunks that follow each other in a segment share a frame, of up to 4 MiB."""
    parts: list[Raw] = []
    chunks: list[bytes] = []
    begin, size = ("", 0), 0

    def end_write() -> None:
        if chunks:
            parts.extend(encode(Write(epoch, partition, *begin), chunks))
            chunks.clear()

    for piece in pieces:
        if piece.base_lsn >= 0:
            end_write()
            parts.extend(encode(Open(epoch, partition, piece.after[0], piece.base_lsn), [piece.data]))
            continue
        if size + len(piece.data) > WRITE_BYTES_MAX:
            end_write()
        if not chunks:
            begin, size = (piece.after[0], piece.after[1] - len(piece.data)), 0
        chunks.append(piece.data)
        size += len(piece.data)
    end_write()
    return Frames(parts, sum(map(len, parts)))
