"""Events of a process that nobody can ask, such as the supervisor, sent to the gateway, which shows them all.

A datagram each, to a socket of the gateway in the data directory; nothing waits for it. A gateway that is not there
yet, or is started again, gets all that the process still keeps."""

from __future__ import annotations

import errno
import os
import socket

import msgspec

from rumq.events.event_ring import EventRing
from rumq.unix_address import Address

NAME = "events.sock"
A_FLUSH_MAX = 200  # events


class EventSender:
    """source: what the process is called; directory: of the broker's data"""

    def __init__(self, ring: EventRing, directory: str, source: str) -> None:
        self._ring, self._directory, self._source = ring, os.path.abspath(directory), source
        self._next = ring.first
        self._socket: socket.socket | None = None

    def flush(self) -> bool:
        """Send what was told since the last time, as far as the gateway takes it; whether something is left."""
        found = self._ring.since(self._next, A_FLUSH_MAX, lambda _: True)
        try:
            for each in found.events:
                self._send({"source": self._source, "time_us": each.time_us, "line": msgspec.Raw(each.line)})
                self._next = each.number + 1
        except BlockingIOError:
            pass  # it has enough to do
        except OSError as fault:
            if fault.errno == errno.EMSGSIZE:
                self._next += 1  # larger than any event of ours
            else:
                self._forget()  # there is none; the next one gets all
        return self._next < self._ring.next

    def _send(self, said: dict[str, object]) -> None:
        """raises: OSError"""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            with Address(f"{self._directory}/{NAME}") as path:
                self._socket.connect(path)
        self._socket.send(msgspec.json.encode(said))

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._next = self._ring.first
