"""The generator's connections over TLS, with the calls of a socket, for `python -m bench --tls`.

A broker may send a record for each message. They are read by the many, in memory: the generator must not be the limit.
"""

import os
import select
import socket
import ssl
from typing import Any

CAFILE = "BENCH_TLS_CAFILE"  # in the environment of the workers: the authority of the broker's certificate
PIECE_BYTES = 1 << 16
RECORD_BYTES = 1 << 14
MARGIN_BYTES = 2 * RECORD_BYTES  # of a record that was read in part before
ANSWER_S = 30.0


class SecureConnection:
    """A client's side. What a plain socket's caller may expect: no bytes wait here while the socket has none."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._sock = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._scratch = memoryview(bytearray(PIECE_BYTES))
        self._unsent = memoryview(b"")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._sock.sendall(self._outgoing.read())
                self._incoming.write(self._sock.recv(PIECE_BYTES))
        self._sock.sendall(self._outgoing.read())

    def fileno(self) -> int:
        return self._sock.fileno()

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)

    def close(self) -> None:
        self._sock.close()

    def sendall(self, data: bytes) -> None:
        while data:
            data = data[self.send(data) :]

    def recv(self, size: int) -> bytes:
        buffer = bytearray(size + MARGIN_BYTES)
        while True:
            try:
                return bytes(buffer[: self.recv_into(memoryview(buffer), size)])
            except BlockingIOError:
                if self._sock.gettimeout() == 0:
                    raise

    def recv_into(self, buffer: memoryview, size: int = 0) -> int:
        size = size or len(buffer)
        wanted = min(max(1, size - MARGIN_BYTES), PIECE_BYTES)
        n = self._opened(buffer, 0, size)
        if n:
            return n
        got = self._sock.recv_into(self._scratch[:wanted])
        if not got:
            return 0
        self._incoming.write(self._scratch[:got])
        n = self._opened(buffer, 0, size)
        if not n:
            raise BlockingIOError
        return n

    def _opened(self, buffer: memoryview, n: int, size: int) -> int:
        try:
            while n < size:
                n += self._tls.read(size - n, buffer[n:size])  # type: ignore[operator]
        except ssl.SSLWantReadError:
            pass
        return n

    def send(self, data: Any) -> int:
        view, taken = memoryview(data), 0
        if not self._pushed():
            raise BlockingIOError
        while taken < len(view):
            end = min(len(view), taken + PIECE_BYTES)
            while taken < end:
                taken += self._tls.write(view[taken : min(end, taken + RECORD_BYTES)])
            self._unsent = memoryview(self._outgoing.read())
            if not self._pushed():
                break
        if taken == len(view) and self._unsent:
            # Nobody would call again for what is left: it is waited for, a piece at most.
            while not self._pushed():
                select.select([], [self._sock], [], ANSWER_S)
        return taken

    def _pushed(self) -> bool:
        while self._unsent:
            try:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
            except BlockingIOError:
                return False
        return True


_contexts: dict[str, ssl.SSLContext] = {}


def secured(connection: socket.socket, host: str) -> socket.socket:
    """The connection with TLS, if the environment asks for it."""
    path = os.environ.get(CAFILE)
    if not path:
        return connection
    if path not in _contexts:
        _contexts[path] = ssl.create_default_context(cafile=path)
    return SecureConnection(connection, _contexts[path], host)  # type: ignore[return-value]
