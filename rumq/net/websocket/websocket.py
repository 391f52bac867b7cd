"""MQTT in WebSocket frames, over TCP or TLS. RFC 6455; MQTT 5.0, chapter 6.

A kernel cuts and unmasks frames of the client in place. Each write of ours is one frame: a header of 2 to 10 bytes
before any number of packets."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from rumq.net.certificate import PeerCertificate
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.net.kernels.frames import Incoming, control, header
from rumq.net.socket_stream import SocketStream
from rumq.net.stream import ReadBuffer, StreamLayer, WriteBuffer
from rumq.net.transport.protocol_mismatch import WEBSOCKET_TEXT, describe_on_websocket
from rumq.net.transport.protocol_mismatch import answer as answer_other
from rumq.net.transport.stream_connection import StreamConnection
from rumq.net.websocket.websocket_handshake import WebSocketOptions, answer, refusal

CLOSE, PONG = 8, 10
NORMAL, NO_CODE = 1000, 1005
END = b"\r\n\r\n"


class WebSocketStream:
    """The server's side of one connection, through another stream."""

    __slots__ = ("_ended", "_head", "_incoming", "_options", "_owner", "below", "is_open")

    def __init__(self, options: WebSocketOptions, below: StreamLayer, owner: StreamConnection) -> None:
        self.below = below
        self.is_open = False
        self._options = options
        self._owner = owner
        self._head: bytearray | None = bytearray()
        self._incoming: Any = Incoming(options.frame_bytes_max)
        self._ended = False

    @classmethod
    def restored(
        cls, below: StreamLayer, owner: StreamConnection, state: list[object], frame_bytes_max: int
    ) -> WebSocketStream:
        """An open one, continued from another process. state: of its frames"""
        stream = cls(WebSocketOptions(frame_bytes_max=frame_bytes_max), below, owner)
        stream.is_open = True
        stream._head = None
        stream._incoming.restore(state)
        return stream

    @property
    def can_move(self) -> bool:
        return self.below.can_move

    def handover_state(self, certificate: PeerCertificate | None) -> bytes:
        if not isinstance(self.below, SocketStream):
            return self.below.handover_state(certificate)
        state = list(self._incoming.state())
        return encode_state(HandoverState(certificate, state, self._options.frame_bytes_max, self.below.unsent()))

    def fileno(self) -> int:
        return self.below.fileno()

    # What comes in

    def recv_into(self, view: WriteBuffer) -> int:
        if self._ended:
            return 0
        if self._incoming.closed:
            return self._close()
        n = self.below.recv_into(view)
        owner = self._owner
        if n == 0:
            if not self.is_open:
                raise OSError(errno.EPROTO, "the client closed before the WebSocket handshake was over")
            return 0
        if n == len(view) or owner.ended:
            owner.pump.read_next_turn(owner)
        if not self.is_open:
            n = self._upgrade(view, n)
        incoming = self._incoming
        out: int = incoming.take(view, n)
        if incoming.ping is not None:
            self._try_push()
        if incoming.fault:
            self._say_close(incoming.fault)
            raise OSError(errno.EPROTO, incoming.why)
        if incoming.closed and out:
            owner.pump.read_next_turn(owner)  # what came before CLOSE is answered first
        elif incoming.closed:
            return self._close()
        if out == 0:
            raise BlockingIOError
        return out

    def _close(self) -> int:
        """Answer a CLOSE with its code: the end. 5.5.1"""
        code = self._incoming.closed
        self._say_close(NORMAL if code == NO_CODE else code)
        return 0

    def _upgrade(self, view: WriteBuffer, n: int) -> int:
        """Handle bytes of the request; returns how many there are behind it, at the front of `view`.

        raises: BlockingIOError until it is whole, OSError"""
        head, handshake = self._head, self._owner.handshake
        assert head is not None and handshake is not None
        handshake.progress()
        handshake.transport_name = "websocket"
        before = len(head)
        head += memoryview(view)[:n]
        pending_logins = self._owner.pump.pending_logins
        if not pending_logins.keep_bytes(self._owner, len(head)):
            raise OSError(errno.ENOBUFS, "too much is kept of connections that have not logged in")
        if head[:1] < b"A" or head[:1] > b"Z":
            self._refuse(answer_other(bytes(head), WEBSOCKET_TEXT), describe_on_websocket(bytes(head)))
        end = head.find(END, max(0, before - 3))
        if end < 0 and len(head) <= self._options.header_bytes_max:
            raise BlockingIOError
        if end < 0 or end > self._options.header_bytes_max:
            found = refusal(431, "the request's header is too long", "an HTTP header of more bytes than allowed")
            self._refuse(*found)
        end += len(END)
        data, why = answer(bytes(head[:end]), self._options)
        if why:
            self._refuse(data, why)
        self._head = None
        self.below.put([data], len(data))
        self._try_push()
        self.is_open = True
        rest = bytes(head[end:])
        view[: len(rest)] = rest
        self._owner.opened(self)
        return len(rest)

    def _refuse(self, data: bytes, why: str) -> None:
        if data:
            self.below.put([data], len(data))
            self._try_push()
        self._ended = True
        raise OSError(errno.EPROTO, why)

    # What goes out

    def put(self, buffers: Sequence[ReadBuffer], size: int) -> None:
        head = header(size)
        self.below.put([head, *buffers], size + len(head))

    def push(self) -> bool:
        if not self.below.push():
            return False
        ping = self._incoming.ping
        if ping is None or self._ended:
            return True
        # One at a time: a client that does not read gets no more answers.
        self._incoming.ping = None
        pong = control(PONG, ping)
        self.below.put([pong], len(pong))
        return self.below.push()

    def _try_push(self) -> None:
        try:
            if not self.push():
                self._owner.blocked = True
        except OSError:
            pass  # the next read fails

    def pending(self) -> bool:
        return self.below.pending()

    def _say_close(self, code: int) -> None:
        if not self._ended:
            self._ended = True
            if not self.below.pending():
                data = control(CLOSE, code.to_bytes(2, "big"))
                self.below.put([data], len(data))
                self._try_push()

    # The end

    def shutdown(self, how: int) -> None:
        if self.is_open:
            self._say_close(NORMAL)
        self.below.shutdown(how)

    def recv(self, size: int) -> bytes:
        return self.below.recv(size)

    def close(self) -> None:
        self.below.close()

    def detach(self) -> int:
        return self.below.detach()

    def certificate(self) -> PeerCertificate | None:
        return self.below.certificate()
