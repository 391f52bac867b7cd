"""The handler of a link between a leader and an edge: `rumq.cluster.links.client_moves`. Knows no client."""

from __future__ import annotations

from collections.abc import Callable

from rumq.cluster.links.client_moves import EdgeMessage
from rumq.net.connection import Connection
from rumq.net.frames import MessageReader, Raw, encode


class MoveHandler:
    """received: told of each message with its raw bytes; lost: that the link has ended, once"""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_frames", "_lost", "_received", "closed", "transport")

    def __init__(
        self, transport: Connection, received: Callable[[EdgeMessage, bytes], None], lost: Callable[[], None]
    ) -> None:
        self.transport = transport
        self._received, self._lost = received, lost
        self._frames: MessageReader[EdgeMessage] = MessageReader(EdgeMessage)
        self.closed = False

    def say(self, message: EdgeMessage, raw: Raw = b"") -> None:
        if not self.closed:
            for part in encode(message, [raw]):
                self.transport.write(part)

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        with memoryview(data) as view:
            for message, raw in self._frames.feed(view[pos:end]):
                self._received(message, bytes(raw))
        return end

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        if not self.closed:
            self.closed = True
            self._lost()

    def turned_away(self, why: str) -> None: ...

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = False) -> None:
        self.lost("given up")
        self.transport.close()
