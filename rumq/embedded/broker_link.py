"""The link between a program and one broker that it has: lines of JSON over a socket pair, without waiting.

The program sends `start`, `signal` and, by closing its end, the end of all. The process that forks brokers, and the
broker itself, send `directory`, `ready`, `refused` and `ended`. Refuses to know what else a broker is."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

LINE_BYTES_MAX = 16 * 2**20  # of one message: settings with all their streams
READ_BYTES = 65_536

LinkMessage = dict[str, Any]


class LinkClosed(Exception):
    """The other end is gone: the process that forks brokers has ended, and all its brokers with it."""


class BrokerLink:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._unread = b""

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: LinkMessage) -> None:
        """raises: LinkClosed. cost: waits for the other process where a message is longer than a socket's buffer"""
        try:
            self.sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError as fault:
            raise LinkClosed(fault.strerror) from fault

    def receive_nowait(self) -> list[LinkMessage]:
        """The whole messages that have arrived. raises: LinkClosed, once those before it were returned"""
        is_closed = False
        with contextlib.suppress(BlockingIOError):
            try:
                # Not a socket that never blocks: forked copies of it share that flag, and send.
                while data := self.sock.recv(READ_BYTES, socket.MSG_DONTWAIT):
                    self._unread += data
                    if len(self._unread) > LINE_BYTES_MAX:
                        raise LinkClosed(f"a message of more than {LINE_BYTES_MAX} bytes")
                is_closed = True
            except ConnectionError:
                is_closed = True
        *lines, self._unread = self._unread.split(b"\n")
        if is_closed and not lines:
            raise LinkClosed("the other end is closed")
        return [json.loads(line) for line in lines]

    def finish(self) -> None:
        """Say that nothing more is sent; what comes can still be received."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Also where a forked process still has the socket: the other end sees it at once."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def open_pair() -> tuple[BrokerLink, socket.socket]:
    """The program's end, and the one for the other process."""
    ours, theirs = socket.socketpair()
    return BrokerLink(ours), theirs
