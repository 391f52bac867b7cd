"""Frames between processes of rumq, on one machine or between nodes: a message and raw bytes behind it. Sans-IO.

u32 length of the rest | u32 length of the head | head: MessagePack | zeros up to a multiple of 8 | raw bytes

Raw bytes are rows and frames of chunks mostly, so a batch costs the same whatever it holds; rows are read as words.
Two processes that share a ring in memory have them there: the first bit of the frame is set then, and u64 position |
u64 length are in their place."""
# compiled: hot

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

Raw = bytes | bytearray | memoryview
PREFIX = struct.Struct("<II")
FRAME_BYTES_MAX = 1 << 30  # a chunk of one message of 256 MiB, the most that MQTT has, fits in
NO_MESSAGE = (msgspec.MsgspecError, RecursionError)  # of the decoder; RecursionError: nested without end
IN_RING = 1 << 31  # in the first u32: the raw bytes are in a ring
PLACE = struct.Struct("<QQ")
M = TypeVar("M")

_encoder = msgspec.msgpack.Encoder()
REPEATED_BYTES_MAX = 64
_last: tuple[object, bytes] = (None, b"")  # a small message and its frame: a beat is like the one before it


def encode(message: Any, raw: Sequence[Raw] = ()) -> list[Raw]:
    """The buffers that carry a message, without copying the raw ones."""
    global _last
    if not raw and message == _last[0]:
        return [_last[1]]
    head = _encoder.encode(message)
    filler = bytes(-len(head) % 8)
    size = 4 + len(head) + len(filler) + sum(map(len, raw))
    first = PREFIX.pack(size, len(head)) + head + filler
    if not raw and size <= REPEATED_BYTES_MAX:
        _last = message, first
    return [first, *(part for part in raw if len(part))]


def encoded(message: Any, raw: Sequence[Raw] = ()) -> bytes:
    return b"".join(encode(message, raw))


def encode_placed(message: Any, position: int, count: int) -> bytes:
    """The frame of a message whose raw bytes, `count` of them, are in the ring of both sides."""
    head = _encoder.encode(message)
    filler = bytes(-len(head) % 8)
    size = 4 + len(head) + len(filler) + PLACE.size
    return PREFIX.pack(IN_RING | size, len(head)) + head + filler + PLACE.pack(position, count)


def decode(decoder: msgspec.msgpack.Decoder[M], view: memoryview) -> tuple[M, memoryview]:
    """The message in a whole frame without its first u32, and the raw bytes behind it. raises: ValueError"""
    head = int.from_bytes(view[:4], "little")
    try:
        return decoder.decode(view[4 : 4 + head]), view[4 + head + -head % 8 :]
    except NO_MESSAGE as fault:
        raise ValueError(f"a frame that is no message: {fault}") from fault


def maybe_first(decoder: msgspec.msgpack.Decoder[M], data: Raw, bytes_max: int) -> tuple[M, bytes, int] | None:
    """The first message of a stream, its raw bytes, and where it ends; None while it is not all here.

    What follows need not be frames. raises: ValueError, also for a frame of more than `bytes_max` bytes"""
    if len(data) < 8:
        return None
    size, head = PREFIX.unpack_from(data)
    if not 4 <= size <= bytes_max or head > size - 4:
        raise ValueError(f"a first frame of {size} bytes with a head of {head}")
    end = 4 + size
    if len(data) < end:
        return None
    message, raw = decode(decoder, memoryview(data)[4:end])
    return message, bytes(raw), end


class MessageReader(Generic[M]):
    """Cuts a stream of bytes into messages of one union of types."""

    def __init__(self, kind: Any, bytes_max: int = FRAME_BYTES_MAX, first_bytes_max: int = 0) -> None:
        """bytes_max: of a frame; first_bytes_max: of the first one, 0: the same"""
        self._bytes_max, self._now_bytes_max = bytes_max, first_bytes_max or bytes_max
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(kind)
        self._buffer = bytearray()

    def feed(self, data: Raw) -> Iterator[tuple[M, memoryview]]:
        """Each whole message with its raw bytes, which are its own to keep. raises: ValueError"""
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 8:
            size, head = PREFIX.unpack_from(self._buffer, at)
            if not 4 <= size <= self._now_bytes_max or head > size - 4:
                raise ValueError(f"a frame of {size} bytes with a head of {head}")
            if len(self._buffer) - at < 4 + size:
                break
            whole = memoryview(bytes(memoryview(self._buffer)[at + 4 : at + 4 + size]))
            at += 4 + size
            found = decode(self._decoder, whole)
            self._now_bytes_max = self._bytes_max
            yield found
        del self._buffer[:at]

    @property
    def buffered(self) -> int:
        """Bytes behind the last whole message."""
        return len(self._buffer)

    def rest(self) -> bytes:
        """Bytes behind the last whole message; they are given up here."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest
