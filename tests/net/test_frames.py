"""Frames: a message with raw bytes behind it, cut out of a stream however it is divided."""

import msgspec
import pytest

from rumq.cluster.links.greeting import Greeting
from rumq.cluster.replication.messages import Beat, Heard, ReplicaMessage, Write
from rumq.net.frames import FRAME_BYTES_MAX, PREFIX, MessageReader, encode, encoded, maybe_first

MESSAGES = [(Heard(1), b""), (Write(1, "p", "s", 4096), b"chunk"), (Heard(1 << 40), bytes(1000))]
STREAM = b"".join(encoded(message, [raw]) for message, raw in MESSAGES)


def reader() -> MessageReader[ReplicaMessage]:
    return MessageReader(ReplicaMessage)


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


def test_a_message_that_is_repeated_is_encoded_once_and_another_one_is_not_taken_for_it() -> None:
    [first], [again] = encode(Beat(1, {})), encode(Beat(1, {}))
    assert again is first
    assert encode(Beat(2, {})) != [first] and encode(Beat(1, {"p": 1})) != [first]
    assert encode(Heard(1)) == encode(Heard(1)) != encode(Heard(1, False))
    assert encode(Beat(1, {}))[0] == first


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


def test_the_first_frame_may_have_another_bound() -> None:
    small, large = encoded(Heard(1)), encoded(Heard(2), [bytes(5000)])
    reader: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage, 10_000, first_bytes_max=100)
    assert [message for message, _ in reader.feed(small + large)] == [Heard(1), Heard(2)]
    for first in (large, large[:8]):
        reader = MessageReader(ReplicaMessage, 10_000, first_bytes_max=100)
        with pytest.raises(ValueError, match="a frame of 50"):
            list(reader.feed(first))
    with pytest.raises(ValueError, match="a frame of"):
        list(MessageReader(ReplicaMessage, 100).feed(large))


def test_what_waits_for_the_rest_of_its_frame_is_counted() -> None:
    reader: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage)
    whole = encoded(Heard(2), [bytes(5000)])
    list(reader.feed(whole[:4000]))
    assert reader.buffered == 4000
    list(reader.feed(whole[4000:]))
    assert reader.buffered == 0


@pytest.mark.parametrize("first", [True, False])
def test_a_message_nested_without_end_is_no_message(first: bool) -> None:
    """A field that this version does not know is skipped, however it is built: msgspec raises RecursionError."""
    greeting = msgspec.msgpack.encode(Greeting("replica", "c", "n", 0, 1))
    count = 1 + len(msgspec.structs.fields(Greeting))  # with its tag
    assert greeting[0] == 0x90 + count  # an array; one more follows
    head = bytes([greeting[0] + 1]) + greeting[1:] + b"\x91" * 60_000 + b"\x00"
    frame = PREFIX.pack(4 + len(head), len(head)) + head
    decoder = msgspec.msgpack.Decoder(Greeting)
    with pytest.raises(ValueError, match="no message"):
        maybe_first(decoder, frame, 1 << 16) if first else list(reader().feed(frame))
