"""A non-blocking socket that carries frames of replication. Knows no rule."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from rumq.cluster.links.frames import FrameReader, Raw, encode
from rumq.cluster.replication.messages import ReplicaMessage

READ_BYTES = 1 << 20
OUTBOX_BYTES = 8 << 20
Supply = Iterator[tuple[ReplicaMessage, Sequence[Raw]]]


class FrameLink:
    """is_connecting: a connection that this process has dialled, which is not there yet; closed: it has ended

    supply: messages that are taken as the socket takes them, behind those that were sent"""

    def __init__(self, sock: socket.socket, *, is_connecting: bool = False) -> None:
        self.sock = sock
        self.is_connecting = is_connecting
        self.closed = False
        self.closes = False  # once everything has been sent
        self.supply: Supply | None = None
        self._reader: FrameReader[ReplicaMessage] = FrameReader(ReplicaMessage)
        self._outbox: deque[memoryview] = deque()
        self._waiting = 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def has_output(self) -> bool:
        return self.is_connecting or bool(self._outbox) or self.supply is not None

    def send(self, message: Any, raw: Sequence[Raw] = ()) -> None:
        """Queue a message; `flush` sends it."""
        for part in encode(message, raw):
            self._outbox.append(memoryview(part).cast("B"))
            self._waiting += len(part)

    def flush(self) -> None:
        """Send what the socket takes."""
        if self.closed:
            return
        if self.is_connecting:
            if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.close()
                return
            self.is_connecting = False
        try:
            while True:
                self._draw()
                if not self._outbox:
                    break
                sent = self.sock.sendmsg([self._outbox[at] for at in range(min(64, len(self._outbox)))])
                self._sent(sent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if self.closes:
            self.close()

    def _draw(self) -> None:
        while self.supply is not None and self._waiting < OUTBOX_BYTES // 2:
            following = next(self.supply, None)
            if following is None:
                self.supply = None
            else:
                self.send(*following)

    def _sent(self, size: int) -> None:
        self._waiting -= size
        while size:
            first = self._outbox[0]
            if len(first) > size:
                self._outbox[0] = first[size:]
                return
            size -= len(first)
            self._outbox.popleft()

    def read(self) -> list[tuple[ReplicaMessage, memoryview]]:
        """What has come; `closed` is set when the other end has gone, or has sent what is no frame."""
        try:
            data = self.sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            self.close()
            return []
        if not data:
            self.close()
            return []
        try:
            return list(self._reader.feed(data))
        except ValueError:
            self.close()
            return []

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.sock.close()
