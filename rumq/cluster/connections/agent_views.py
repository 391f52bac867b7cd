"""The link of a process beside the broker to the agent of its node: it says who it is, and is shown each view.

The link is made anew when it is lost; the last view holds meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

from rumq.cluster.control.agent_messages import SOCKET_NAME, AgentMessage, Here, KafkaAt, Seen
from rumq.cluster.control.records import View
from rumq.net.frames import MessageReader, encoded
from rumq.unix_address import Address

RETRY_SECONDS = 0.1
READ_BYTES = 1 << 16


class AgentViews:
    """directory: of the data; role: as of `Here`; seen: takes each view

    kafka: where clients find this Kafka server, "host:port"; empty: nobody is told"""

    def __init__(self, directory: str, role: str, seen: Callable[[View], None], kafka: str = "") -> None:
        self._directory, self._role, self._seen, self._kafka = directory, role, seen, kafka

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._follow()
            except (OSError, ValueError, trio.BrokenResourceError):
                pass  # it starts, or is of another version while the node is upgraded
            await trio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        """Until the agent has gone. raises: OSError, ValueError, trio.BrokenResourceError"""
        reader: MessageReader[AgentMessage] = MessageReader(AgentMessage)
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        with sock, Address(f"{self._directory}/{SOCKET_NAME}") as path:
            await sock.connect(path)
            stream = trio.SocketStream(sock)
            said = [Here(self._role, -1, os.getpid()), *([KafkaAt(self._kafka)] if self._kafka else [])]
            await stream.send_all(b"".join(map(encoded, said)))
            while data := await stream.receive_some(READ_BYTES):
                for message, _ in reader.feed(data):
                    if isinstance(message, Seen):
                        self._seen(message.view)
