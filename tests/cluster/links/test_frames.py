"""Frames: a message with raw bytes behind it, cut out of a stream however it is divided."""

import msgspec
import pytest

from rumq.cluster.links.frames import FRAME_BYTES_MAX, PREFIX, FrameReader, encode, encoded
from rumq.cluster.replication.messages import Heard, ReplicaMessage, Write

MESSAGES = [(Heard(1), b""), (Write(1, "p", "s", 4096), b"chunk"), (Heard(1 << 40), bytes(1000))]
STREAM = b"".join(encoded(message, [raw]) for message, raw in MESSAGES)


def reader() -> FrameReader[ReplicaMessage]:
    return FrameReader(ReplicaMessage)


@pytest.mark.parametrize("size", [1, 7, 8, 64, len(STREAM)])
def test_it_does_not_matter_how_a_stream_is_divided(size: int) -> None:
    frames = reader()
    found = [
        (message, bytes(raw))
        for at in range(0, len(STREAM), size)
        for message, raw in frames.feed(STREAM[at : at + size])
    ]
    assert found == MESSAGES and frames.rest() == b""


def test_raw_bytes_are_not_copied_and_begin_at_a_multiple_of_8() -> None:
    raw = memoryview(b"x" * 100)
    head, same = encode(Write(1, "p", "s", 0), [raw])
    assert same is raw and len(head) % 8 == 0


def test_what_follows_is_given_up_once() -> None:
    frames = reader()
    assert [message for message, _ in frames.feed(encoded(Heard(1)) + b"rest")] == [Heard(1)]
    assert (frames.rest(), frames.rest()) == (b"rest", b"")


@pytest.mark.parametrize(
    "data",
    [
        PREFIX.pack(FRAME_BYTES_MAX + 1, 4),
        PREFIX.pack(3, 0),
        PREFIX.pack(8, 5),
        PREFIX.pack(5, 1) + b"\xc1",
        encoded(msgspec.Raw(b"\x01")),
    ],
)
def test_what_is_no_frame_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(ValueError, match="frame"):
        list(reader().feed(data))
