"""A non-blocking socket that carries frames of replication, plain or over mutual TLS. Knows no rule."""
# compiled: hot

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from rumq.cluster.links.frame_outbox import FrameOutbox
from rumq.cluster.links.greeting_queue import GREETING_BYTES_MAX
from rumq.cluster.node.link_handshake import LinkHandshake, LinkTls
from rumq.cluster.replication.messages import ReplicaMessage
from rumq.net.frames import MessageReader, Raw

READ_BYTES = 1 << 20
_received = memoryview(bytearray(READ_BYTES))  # of all links: each takes out at once what it has read
SEND_BYTES = 1 << 16  # over TLS: the same bytes must be given again where the socket is full
WAITS = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
OF_THE_OTHER_END = (errno.ECONNRESET, errno.EPIPE)


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
    is_watched_for_room: whether its owner waits for the socket to take more, too

    handshake: of TLS; outbox: what `flush` sends"""

    def __init__(
        self, sock: socket.socket, tls: LinkTls | None = None, *, is_connecting: bool = False, node: str = ""
    ) -> None:
        """tls: None for plain bytes; node: id of whom this process dials, empty for anybody

        A link that others dial takes a first frame of GREETING_BYTES_MAX, and no large reads until it is `proved`"""
        self.sock, self.fd = sock, sock.fileno()
        self.handshake = LinkHandshake(tls, node)
        self.outbox = FrameOutbox()
        self.is_connecting = is_connecting
        self.closed = self.ended_there = self.is_watched_for_room = False
        self.closes = False  # True if the link closes once everything has been sent
        self.why = ""
        first_bytes_max = 0 if is_connecting else GREETING_BYTES_MAX
        self._read_bytes = READ_BYTES if is_connecting else GREETING_BYTES_MAX
        self._reader: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage, first_bytes_max=first_bytes_max)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not is_connecting:
            self.sock = self.handshake.wrap(sock, is_server=True)

    def proved(self) -> None:
        """The other end has greeted, and is a node: it may send more."""
        self._read_bytes = READ_BYTES
        if self.why:
            self.close(self.why)

    @property
    def has_output(self) -> bool:
        if self.handshake.waits_to_read:
            return False
        return self.is_connecting or not self.outbox.is_empty

    @property
    def buffered(self) -> int:
        """Bytes of a message that is not here as a whole."""
        return self._reader.buffered

    def send(self, message: Any, raw: Sequence[Raw] = ()) -> None:
        """Queue a message; `flush` sends it."""
        self.outbox.put(message, raw)

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
            self.sock = self.handshake.wrap(self.sock, is_server=False)
        try:
            self.handshake.go_on(self.sock)
            while parts := self.outbox.first_parts():
                self.outbox.sent(self._send(parts))
        except WAITS:
            return
        except OSError as fault:
            self._failed(fault)
            return
        if self.closes:
            self.close()

    def _send(self, parts: list[memoryview]) -> int:
        """raises: OSError"""
        if self.handshake.tls is not None:
            return self.sock.send(parts[0][:SEND_BYTES])
        return self.sock.sendmsg(parts)

    def read(self) -> list[tuple[ReplicaMessage, memoryview]]:
        """What has come; `closed` is set when the other end has gone, or has sent what is no frame."""
        messages: list[tuple[ReplicaMessage, memoryview]] = []
        try:
            self.handshake.go_on(self.sock)
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
