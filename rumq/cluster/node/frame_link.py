"""A non-blocking socket that carries frames of replication, plain or over mutual TLS. Knows no rule."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rumq.cluster.links.frames import FrameReader, Raw, encode
from rumq.cluster.replication.messages import ReplicaMessage

READ_BYTES = 1 << 20
SEND_BYTES = 1 << 16  # over TLS: the same bytes must be given again where the socket is full
WAITS = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
OUTBOX_BYTES = 8 << 20
Supply = Iterator[tuple[ReplicaMessage, Sequence[Raw]]]


class LinkTls(NamedTuple):
    """Contexts of mutual TLS: of links that others dial, and of those that this process dials."""

    server: ssl.SSLContext
    client: ssl.SSLContext


class FrameLink:
    """is_connecting: a connection that this process has dialled, which is not there yet; closed: it has ended
    fd: of the socket, also once it is closed

    supply: messages that are taken as the socket takes them, behind those that were sent"""

    def __init__(
        self, sock: socket.socket, tls: LinkTls | None = None, *, is_connecting: bool = False
    ) -> None:
        """tls: None for plain bytes"""
        self.sock, self.fd, self._tls = sock, sock.fileno(), tls
        self.is_connecting = is_connecting
        self.closed = False
        self.closes = False  # once everything has been sent
        self.supply: Supply | None = None
        self._reader: FrameReader[ReplicaMessage] = FrameReader(ReplicaMessage)
        self._outbox: deque[memoryview] = deque()
        self._waiting = 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not is_connecting:
            self._wrap(is_server=True)

    def _wrap(self, *, is_server: bool) -> None:
        """The handshake is made by the first reads and writes."""
        if self._tls is not None:
            context = self._tls.server if is_server else self._tls.client
            self.sock = context.wrap_socket(self.sock, is_server, do_handshake_on_connect=False)

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
            self._wrap(is_server=False)
        try:
            while True:
                self._draw()
                if not self._outbox:
                    break
                self._sent(self._send())
        except WAITS:
            return
        except OSError:
            self.close()
            return
        if self.closes:
            self.close()

    def _send(self) -> int:
        """raises: OSError"""
        if self._tls is not None:
            return self.sock.send(self._outbox[0][:SEND_BYTES])
        return self.sock.sendmsg([self._outbox[at] for at in range(min(64, len(self._outbox)))])

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
        messages: list[tuple[ReplicaMessage, memoryview]] = []
        try:
            while True:
                data = self.sock.recv(READ_BYTES)
                if not data:
                    self.close()
                    break
                messages += self._reader.feed(data)
                if not isinstance(self.sock, ssl.SSLSocket) or not self.sock.pending():
                    break
        except WAITS:
            pass
        except (OSError, ValueError):
            self.close()
        return messages

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.sock.close()
