"""The agent's Unix socket, `<data>/_cluster/agent.sock`: the agent's server, and the end of another process.

That end never waits, so that a loop of selectors may use it; a process with a pump has
`rumq.cluster.connections.agent_link`. The server is the agent's, on trio."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path

import trio

from rumq.cluster.control.agent_messages import AgentMessage, Here, Seen
from rumq.cluster.control.records import View
from rumq.net.frames import MessageReader, encoded
from rumq.unix_address import Address

READ_BYTES = 1 << 16
STARTING = {
    errno.ENOENT,
    errno.ECONNREFUSED,
    errno.EAGAIN,
}  # of an agent that is not there yet, or has much to do
QUEUE_MAX = 1000  # messages to a process that does not read; then its link is closed


class AgentSocket:
    """A process's connection to its agent. raises: OSError, here if there is no agent, in `receive` when it has gone.

    path: of the socket; role, shard: as in `Here`. A lost link is closed and another one made."""

    def __init__(self, path: str, role: str, shard: int = -1) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._outbox = bytearray()
        self._reader: MessageReader[AgentMessage] = MessageReader(AgentMessage)
        try:
            self._socket.setblocking(False)
            with Address(path) as address:
                self._socket.connect(address)
        except OSError:
            self._socket.close()
            raise
        self.send(Here(role, shard, os.getpid()))

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether something waits for the socket: `flush` when it is writable. The next `send` tries too."""
        return bool(self._outbox)

    def send(self, message: AgentMessage) -> None:
        """Queue a message and send what the socket takes. A link that is lost says so in `receive`."""
        self._outbox += encoded(message)
        self.flush()

    def flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: self._socket.send(self._outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self._outbox.clear()

    def receive(self) -> list[AgentMessage]:
        """Whole messages that have arrived, perhaps none. raises: OSError, when the agent is gone and all were read"""
        messages: list[AgentMessage] = []
        self.flush()
        while True:
            try:
                data = self._socket.recv(READ_BYTES)
            except BlockingIOError:
                return messages
            if not data:
                if messages:
                    return messages
                raise ConnectionResetError("the agent has closed the link")
            try:
                messages += [message for message, _ in self._reader.feed(data)]
            except ValueError as fault:
                raise ConnectionAbortedError(f"the agent is of another version: {fault}") from fault

    def close(self) -> None:
        self._socket.close()


class LocalProcess:
    """A process that is linked to the agent: what waits to be sent to it."""

    def __init__(self, here: Here, scope: trio.CancelScope) -> None:
        """scope: of its connection"""
        self.here, self._scope = here, scope
        self.wakes = trio.Event()
        self.queue: deque[AgentMessage] = deque()
        self.view: View | None = None  # the view to be sent next; a newer one replaces it

    def send(self, message: AgentMessage) -> None:
        if len(self.queue) >= QUEUE_MAX:
            self._scope.cancel()  # it has been stopped for long; it comes again
        self.queue.append(message)
        self.wakes.set()

    def show(self, view: View) -> None:
        self.view = view
        self.wakes.set()

    def take(self) -> bytes:
        """Everything that waits, the answers first; a view that is shown later has what they brought."""
        messages = list(self.queue)
        self.queue.clear()
        if self.view is not None:
            messages.append(Seen(self.view))
            self.view = None
        return b"".join(map(encoded, messages))


Linked = Callable[[LocalProcess], None]
Heard = Callable[[LocalProcess, AgentMessage], None]


class AgentServer:
    """processes: those that are linked. met: called with each that comes; heard: with what it says; gone: at its end"""

    def __init__(self, path: Path, met: Linked, heard: Heard, gone: Linked) -> None:
        self._path = path
        self._met, self._heard, self._gone = met, heard, gone
        self.processes: list[LocalProcess] = []

    def maybe_shard(self, number: int) -> LocalProcess | None:
        """The process of a shard; the latest, while an older one ends."""
        found = (each for each in reversed(self.processes) if each.here.role == "shard")
        return next((each for each in found if each.here.shard == number), None)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. A socket that an earlier agent left is removed: the data directory is ours."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with bound, Address(str(self._path)) as address:
            bound.bind(address)
            self._path.chmod(0o600)
            bound.listen(64)
            listener = trio.socket.from_stdlib_socket(bound)
            task_status.started()
            async with trio.open_nursery() as nursery:
                while True:
                    connection, _ = await listener.accept()
                    nursery.start_soon(self._serve, trio.SocketStream(connection))

    async def _serve(self, stream: trio.SocketStream) -> None:
        reader: MessageReader[AgentMessage] = MessageReader(AgentMessage)
        process: LocalProcess | None = None
        try:
            async with stream, trio.open_nursery() as nursery:
                async for data in stream:
                    for message, _ in reader.feed(data):
                        if process is None:
                            process = self._meet(message, nursery.cancel_scope)
                            nursery.start_soon(_send_all, stream, process)
                        else:
                            self._heard(process, message)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, ValueError):
            pass  # the process has gone, or is of another version: it comes again
        finally:
            if process is not None:
                self.processes.remove(process)
                self._gone(process)

    def _meet(self, message: AgentMessage, scope: trio.CancelScope) -> LocalProcess:
        if not isinstance(message, Here):
            raise ValueError("a link begins with Here")
        process = LocalProcess(message, scope)
        self.processes.append(process)
        self._met(process)
        return process


async def _send_all(stream: trio.SocketStream, process: LocalProcess) -> None:
    while True:
        await process.wakes.wait()
        process.wakes = trio.Event()
        if waiting := process.take():
            await stream.send_all(waiting)
