"""Frames of what a writer has told: chunks that follow each other share one, up to a size."""

from typing import Any

from rumq.cluster.replication.messages import Open, ReplicaMessage, Write
from rumq.net.frames import MessageReader
from rumq.shards.replication.feeding.copied_partition import CopyPiece
from rumq.shards.replication.feeding.piece_frames import WRITE_BYTES_MAX, frames_of


def chunk(name: str, position: int, data: bytes) -> CopyPiece:
    return CopyPiece((name, position), (name, position + len(data)), -1, data)


def read(pieces: list[CopyPiece]) -> list[tuple[Any, bytes]]:
    frames = frames_of(pieces, 3, "main/g1/p0")
    data = b"".join(map(bytes, frames.parts))
    assert frames.size == len(data)
    reader: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage)
    return [(message, bytes(raw)) for message, raw in reader.feed(data)]


def test_chunks_in_a_row_are_one_write() -> None:
    assert read([chunk("a", 4096, b"one"), chunk("a", 4099, b"two")]) == [
        (Write(3, "main/g1/p0", "a", 4096), b"onetwo")
    ]


def test_a_new_segment_begins_behind_what_ended_the_old_one() -> None:
    header = CopyPiece(("a", 4099), ("b", 4096), 17, bytes(4096))
    found = read([chunk("a", 4096, b"end"), header, chunk("b", 4096, b"new")])
    assert found == [
        (Write(3, "main/g1/p0", "a", 4096), b"end"),
        (Open(3, "main/g1/p0", "b", 17), bytes(4096)),
        (Write(3, "main/g1/p0", "b", 4096), b"new"),
    ]


def test_a_write_is_not_larger_than_its_bound() -> None:
    half = bytes(WRITE_BYTES_MAX // 2)
    pieces = [chunk("a", 4096 + at * len(half), half) for at in range(3)]
    assert [(each.position, len(raw)) for each, raw in read(pieces)] == [
        (4096, WRITE_BYTES_MAX),
        (4096 + WRITE_BYTES_MAX, len(half)),
    ]


def test_nothing_is_no_frame() -> None:
    assert frames_of([], 3, "p").parts == []
