"""A socket as the lowest stream: it keeps what the socket did not take, and changes nothing."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from rumq.net.stream import ReadBuffer, WriteBuffer

IOV_MAX = 512


class SocketStream:
    """A `rumq.net.stream.StreamLayer`, never the uppermost one of an open connection."""

    can_move = True

    __slots__ = ("_kept", "_sock", "_unsent", "is_open")

    def __init__(self, sock: socket.socket, kept: bytes = b"") -> None:
        """kept: bytes that were read before"""
        self._sock = sock
        self._kept = kept
        self._unsent: list[ReadBuffer] = []
        self.is_open = True

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv_into(self, view: WriteBuffer) -> int:
        if self._kept:
            n = min(len(self._kept), len(view))
            view[:n] = self._kept[:n]
            self._kept = self._kept[n:]
            return n
        return self._sock.recv_into(view)

    def put(self, buffers: Sequence[ReadBuffer], size: int) -> None:
        self._unsent += buffers

    def push(self) -> bool:
        waiting = self._unsent
        if not waiting:
            return True
        if len(waiting) > IOV_MAX:
            waiting = self._unsent = [b"".join(waiting)]
        try:
            sent = self._sock.sendmsg(waiting)
        except BlockingIOError:
            return False
        for at, data in enumerate(waiting):
            if sent < len(data):
                self._unsent = [memoryview(data)[sent:], *waiting[at + 1 :]]
                return False
            sent -= len(data)
        waiting.clear()
        return True

    def pending(self) -> bool:
        return bool(self._unsent)

    def unsent(self) -> bytes:
        return b"".join(self._unsent)

    def shutdown(self, how: int) -> None:
        self._sock.shutdown(how)

    def recv(self, size: int) -> bytes:
        return self._sock.recv(size)

    def close(self) -> None:
        self._sock.close()

    def detach(self) -> int:
        return self._sock.detach()

    def certificate(self) -> None:
        return None

    def handover_state(self, certificate: object) -> bytes:
        return b""
