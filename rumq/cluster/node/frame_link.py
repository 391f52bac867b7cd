"""A non-blocking socket that carries frames of replication, plain or over mutual TLS. Knows no rule."""

from __future__ import annotations

import errno
import socket
import ssl
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rumq.cluster.links.frames import FrameReader, Raw, encode
from rumq.cluster.links.greeting_queue import GREETING_BYTES_MAX
from rumq.cluster.links.node_names import NodeNames, uris_of
from rumq.cluster.replication.messages import ReplicaMessage

READ_BYTES = 1 << 20
_received = memoryview(bytearray(READ_BYTES))  # of all links: each takes out at once what it has read
SEND_BYTES = 1 << 16  # over TLS: the same bytes must be given again where the socket is full
WAITS = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
OUTBOX_BYTES = 8 << 20
OF_THE_OTHER_END = (errno.ECONNRESET, errno.EPIPE)
Supply = Iterator[tuple[ReplicaMessage, Sequence[Raw]]]


@dataclass(slots=True)
class LinkTls:
    """Contexts of mutual TLS: of links that others dial, and of those that this process dials. names: what certificates
    must say. Links that are made later use the contexts that are there then: certificates are renewed so."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    names: NodeNames


class Impostor(OSError):
    """What was dialled has another node's certificate, or none of a node."""


def is_connected(sock: socket.socket) -> bool:
    """False while connect(2) is in progress."""
    try:
        sock.getpeername()
    except OSError as fault:
        return fault.errno != errno.ENOTCONN  # else it has failed, which the next call finds
    return True


class FrameLink:
    """is_connecting: a connection that this process has dialled, which is not there yet; closed: it has ended
    ended_there: the other end has closed it, or is gone; else this one gave it up, and the other may know nothing of it
    fd: of the socket, also once it is closed; why: the reason that it was closed for, empty for a plain end; of bytes
    behind a greeting that are no frame also before it is closed, for a greeting that is refused is answered
    is_open: its TLS handshake is over, or it needs none; uris: of the other's certificate then
    is_watched_for_room: whether its owner waits for the socket to take more, too

    supply: messages that are taken as the socket takes them, behind those that were sent"""

    def __init__(
        self, sock: socket.socket, tls: LinkTls | None = None, *, is_connecting: bool = False, node: str = ""
    ) -> None:
        """tls: None for plain bytes; node: id of whom this process dials, empty for anybody

        A link that others dial takes a first frame of GREETING_BYTES_MAX, and no large reads until it is `proved`"""
        self.sock, self.fd, self._tls, self._node = sock, sock.fileno(), tls, node
        self.is_connecting = is_connecting
        self.closed = self.ended_there = self.is_watched_for_room = False
        self.closes = False  # once everything has been sent
        self.why = ""
        self.supply: Supply | None = None
        self.uris: tuple[str, ...] = ()
        self.is_open = tls is None
        self.is_impostor = False  # what was dialled is another node, or none
        self._waits_to_read = False  # the handshake needs bytes of the other end
        first_bytes_max = 0 if is_connecting else GREETING_BYTES_MAX
        self._read_bytes = READ_BYTES if is_connecting else GREETING_BYTES_MAX
        self._reader: FrameReader[ReplicaMessage] = FrameReader(
            ReplicaMessage, first_bytes_max=first_bytes_max
        )
        self._outbox: deque[memoryview] = deque()
        self._waiting = 0
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not is_connecting:
            self._wrap(is_server=True)

    def proved(self) -> None:
        """The other end has greeted, and is a node: it may send more."""
        self._read_bytes = READ_BYTES
        if self.why:
            self.close(self.why)

    def _wrap(self, *, is_server: bool) -> None:
        """The handshake is made by the first reads and writes."""
        if self._tls is not None:
            context = self._tls.server if is_server else self._tls.client
            self.sock = context.wrap_socket(self.sock, is_server, do_handshake_on_connect=False)

    def _shake_hands(self) -> None:
        """Make a step of the handshake. raises: OSError, `WAITS` among them, until it is done"""
        if self.is_open:
            return
        assert self._tls is not None and isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._waits_to_read = True
            raise
        self._waits_to_read = False
        self.uris = uris_of(self.sock.getpeercert())
        if self._node and (problem := self._tls.names.maybe_problem(self.uris, self._node)):
            self.is_impostor = True
            raise Impostor(problem)
        self.is_open = True

    @property
    def has_output(self) -> bool:
        if self._waits_to_read:
            return False
        return self.is_connecting or bool(self._outbox) or self.supply is not None

    @property
    def buffered(self) -> int:
        """Bytes of a message that is not here as a whole."""
        return self._reader.buffered

    def send(self, message: Any, raw: Sequence[Raw] = ()) -> None:
        """Queue a message; `flush` sends it."""
        for part in encode(message, raw):
            self._outbox.append(memoryview(part).cast("B"))
            self._waiting += len(part)

    def send_bytes(self, data: bytes) -> None:
        """Queue bytes that are no frame, behind the last one."""
        self._outbox.append(memoryview(data))
        self._waiting += len(data)

    def flush(self) -> None:
        """Send what the socket takes."""
        if self.closed:
            return
        if self.is_connecting:
            if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.close()
                return
            if not is_connected(self.sock):
                return  # it is flushed again when its socket takes something
            self.is_connecting = False
            self._wrap(is_server=False)
        try:
            self._shake_hands()
            while True:
                self._draw()
                if not self._outbox:
                    break
                self._sent(self._send())
        except WAITS:
            return
        except OSError as fault:
            self._failed(fault)
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
            self._shake_hands()
            while True:
                size = self.sock.recv_into(_received, self._read_bytes)
                if not size:
                    self.ended_there = True
                    self.close()
                    break
                messages += self._reader.feed(_received[:size])
                if not isinstance(self.sock, ssl.SSLSocket) or not self.sock.pending():
                    break
        except WAITS:
            pass
        except OSError as fault:
            self._failed(fault)
        except ValueError as fault:
            if messages and self._read_bytes == GREETING_BYTES_MAX:
                self.why = str(fault)
            else:
                self.close(str(fault))
        return messages

    def _failed(self, fault: OSError) -> None:
        self.ended_there = fault.errno in OF_THE_OTHER_END
        self.close(str(fault))

    def close(self, why: str = "") -> None:
        if not self.closed:
            self.closed, self.why = True, why
            self.sock.close()
