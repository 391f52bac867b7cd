"""A process's link to the agent of its node: it says who it is, and is told the view at once and at every change.

For a process with a pump; others have `agent_socket`. The link is made anew when it is lost; the
last view holds meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from rumq.cluster.connections.agent_socket import STARTING
from rumq.cluster.control.agent_messages import AgentMessage, Here, Seen
from rumq.cluster.control.records import View
from rumq.net.connection import Connection
from rumq.net.frames import FRAME_BYTES_MAX, MessageReader, encoded
from rumq.net.pump import Pump
from rumq.unix_address import Address

RETRY_SECONDS = 0.1
OUTBOX_BYTES_MAX = 1 << 20


class AgentLink:
    """view: the last one, None before the first"""

    def __init__(
        self,
        pump: Pump,
        path: str,
        here: Here,
        *,
        later: Callable[[float, Callable[[], None]], None],
        seen: Callable[[View], None],
        heard: Callable[[AgentMessage], None] = lambda message: None,
        tell: Callable[..., None] = lambda name, **fields: None,
    ) -> None:
        """path: of the agent's socket; here: this process; seen: told of each view; heard: of other messages

        tell: takes the event of a fault that waiting does not cure"""
        self._pump, self._path, self._here, self._later = pump, path, here, later
        self._seen, self._heard, self._tell = seen, heard, tell
        self._has_told = False
        self._handler: AgentHandler | None = None
        self._is_closed = False
        self.view: View | None = None

    def open(self) -> None:
        """Connect, now or once the agent is there."""
        if self._is_closed:
            return
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            with Address(self._path) as address:
                sock.connect(address)
        except OSError as fault:
            sock.close()
            if fault.errno not in STARTING and not self._has_told:
                self._has_told = True
                self._tell("cluster.agent_unreachable", path=self._path, why=str(fault))
            self._later(RETRY_SECONDS, self.open)
            return
        connection = Connection(self._pump, sock, "agent", OUTBOX_BYTES_MAX)
        self._handler = connection.link = AgentHandler(connection, self._received, self._lost)
        self._pump.add(connection)
        self.say(self._here)

    def say(self, message: AgentMessage) -> bool:
        """False if the agent is away."""
        if self._handler is None or self._handler.closed:
            return False
        self._handler.transport.write(encoded(message))
        return True

    def flush(self) -> None:
        """Send what was said, before this process ends."""
        if self._handler is not None and not self._handler.closed:
            self._handler.transport.flush()

    def close(self) -> None:
        self._is_closed = True
        if self._handler is not None:
            self._handler.end()

    def _received(self, message: AgentMessage) -> None:
        if isinstance(message, Seen):
            self.view = message.view
            self._seen(message.view)
        else:
            self._heard(message)

    def _lost(self) -> None:
        self._handler = None
        if not self._is_closed:
            self._later(RETRY_SECONDS, self.open)


class AgentHandler:
    """The handler of the connection."""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_frames", "_lost", "_received", "closed", "transport")

    def __init__(
        self, transport: Connection, received: Callable[[AgentMessage], None], lost: Callable[[], None],
        bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:  # fmt: skip
        """bytes_max: of a frame"""
        self.transport = transport
        self._received, self._lost = received, lost
        self._frames: MessageReader[AgentMessage] = MessageReader(AgentMessage, bytes_max)
        self.closed = False

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        with memoryview(data) as view:
            try:
                for message, _ in self._frames.feed(view[pos:end]):
                    self._received(message)
            except ValueError:
                self.end()  # it is of another version, or sends too much
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


def here_of(role: str, shard: int) -> Here:
    """This process, as it introduces itself."""
    return Here(role, shard, os.getpid())
