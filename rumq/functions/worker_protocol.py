"""Messages between the function process and a worker: one byte that says what it is, a length, and bytes.

A request is a batch, an answer is a batch or a sentence. No process and no Arrow here."""

from __future__ import annotations

import struct
from typing import NamedTuple

HEAD = struct.Struct("!cQ")
CALL, RESULT, READY = b"c", b"r", b"o"
RAISED, WRONG, NOT_LOADED, NO_MEMORY = b"e", b"w", b"l", b"m"  # answers with a sentence
SENTENCE_CHARACTERS_MAX = 500


class WorkerMessage(NamedTuple):
    kind: bytes
    body: bytes

    @property
    def sentence(self) -> str:
        return self.body.decode(errors="replace")


def packed(kind: bytes, body: bytes) -> bytes:
    return HEAD.pack(kind, len(body)) + body


def packed_sentence(kind: bytes, text: str) -> bytes:
    """One line, cut: of a traceback the last one."""
    last = text.strip().splitlines()[-1:] or [""]
    return packed(kind, last[0][:SENTENCE_CHARACTERS_MAX].encode(errors="backslashreplace"))


class WorkerMessageReader:
    """Bytes as they arrive, to messages. body_bytes_max: a longer one raises ValueError, before it is there"""

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._buffer = bytearray()

    def add(self, data: bytes) -> None:
        self._buffer += data

    def maybe_message(self) -> WorkerMessage | None:
        """raises: ValueError"""
        if len(self._buffer) < HEAD.size:
            return None
        kind, length = HEAD.unpack_from(self._buffer)
        if length > self._body_bytes_max:
            raise ValueError(f"a message of {length} bytes: expected {self._body_bytes_max} at most")
        end = HEAD.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[HEAD.size : end])
        del self._buffer[:end]
        return WorkerMessage(kind, body)
