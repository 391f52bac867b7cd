"""The bus: one stream socket to each other shard, served by the pump like a client's, a message at a time.

What is said is `rumq.shards.bus.messages`; who listens is given. Knows no partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumq.shards.bus.messages import decode, encode

MESSAGE_BYTES_MAX = 1 << 30


class BusLink:
    """The protocol of one connection to another shard. It is to the pump what a client's link is."""

    is_bus = True

    __slots__ = ("_heard", "_lost", "closed", "drained", "transport")

    def __init__(
        self, transport: Any, heard: Callable[[Any, memoryview], None], lost: Callable[[str], None],
        drained: Callable[[], None],
    ) -> None:  # fmt: skip
        """heard: takes each message with its raw bytes, which are its to read until it returns"""
        self.transport = transport
        self._heard, self._lost, self.drained = heard, lost, drained
        self.closed = False

    def say(self, message: Any, *raw: Any) -> None:
        """Send a message at the end of the turn; raw buffers must not change until then."""
        if not self.closed:
            for part in encode(message, *raw):
                self.transport.write(part)

    def receive(self, data: Any, pos: int, end: int) -> int:
        """Take whole messages of `data[pos:end]`; returns the position of the first byte not taken."""
        view = memoryview(data)
        while end - pos >= 8:
            size = int.from_bytes(view[pos : pos + 4], "little")
            if size > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {size} bytes on the bus")
            if end - pos - 4 < size:
                break
            message, raw = decode(view[pos + 4 : pos + 4 + size])
            self._heard(message, raw)
            pos += 4 + size
            if self.closed:
                return end
        return pos

    def lost(self, why: str) -> None:
        """The other shard is gone."""
        if not self.closed:
            self.closed = True
            self._lost(why)

    def end(self, *, with_will: bool = True) -> None:
        """The connection is given up."""
        self.lost("given up")
        self.transport.close()
