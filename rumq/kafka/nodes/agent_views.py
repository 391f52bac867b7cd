"""The Kafka server's link to the agent of its node: it says where it serves clients, and is shown each view.

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
    """directory: of the data; address: where clients find this server; empty: nobody is told; seen: takes each view"""

    def __init__(self, directory: str, address: str, seen: Callable[[View], None]) -> None:
        self._directory, self._address, self._seen = directory, address, seen

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
            said = [Here("kafka", -1, os.getpid()), *([KafkaAt(self._address)] if self._address else [])]
            await stream.send_all(b"".join(map(encoded, said)))
            while data := await stream.receive_some(READ_BYTES):
                for message, _ in reader.feed(data):
                    if isinstance(message, Seen):
                        self._seen(message.view)
