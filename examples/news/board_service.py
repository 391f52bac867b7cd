"""The part of both services that talks to the broker: queues to the other service, a journal for itself.

A post is pushed to a queue. Each service has a channel of it, and writes what comes by it into its own topic of the
log, its journal, before it acknowledges. After a start it reads its journal, then goes on with its channels: nothing is
lost or shown twice, whatever was killed in between. The services know nothing of each other but the queues.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import trio
from board import Board, Post

from rumq.client import Client, connect

# queue -> its channels. Each service makes all of them, so nothing is pushed before its readers have their channel.
CHANNELS = {"news": ("news-site-news", "comments-site-news"), "comments": ("news-site", "comments-site")}
TTL_SECONDS = 3600  # how long a service may be away


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service's file. gateways: of the broker, or of each node of a cluster: http://HOST:PORT

    token_file: of a token with the roles read, publish, consume and administer"""

    host: str
    port: int
    other: str  # address of the other service's page
    gateways: list[str]
    token_file: str
    queue: str  # where posts that are made here go
    channels: list[str]  # LABEL/CHANNEL, what is shown here
    journal: str  # topic


class BoardService:
    """One connection to the broker, by MQTT over the gateway's WebSocket: one address and one token for everything."""

    def __init__(self, config: Config, client: Client) -> None:
        self._config, self._client = config, client
        self.board = Board()
        self._writing = trio.Lock()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Started once the board is as it was. Until cancelled."""
        for label, channels in CHANNELS.items():
            queue = self._client.queue(label)
            await queue.create(ttl_seconds=TTL_SECONDS)
            for channel_id in channels:
                await queue.create_channel(channel_id, tries_max=0)  # a post is never given up
        async for record in self._client.replay(self._config.journal):
            self.board.add(msgspec.json.decode(record.payload, type=Post))
        task_status.started()
        async with trio.open_nursery() as nursery:
            for name in self._config.channels:
                nursery.start_soon(self._follow, name)

    async def push(self, post: Post) -> None:
        """Return once the broker has it. It comes back by the channel, and then is on the board."""
        await self._client.queue(self._config.queue).push(msgspec.json.encode(post), key=post.about or post.id)

    async def _follow(self, name: str) -> None:
        async with self._client.channel(name) as channel:
            async for message in channel:
                post = msgspec.json.decode(message.payload, type=Post)
                async with self._writing:  # the journal has the order of the board
                    if not self.board.has(post):
                        await self._client.publish(self._config.journal, message.payload, qos=1)
                        self.board.add(post)
                message.acknowledge()


def load(path: str, changes: dict[str, Any]) -> Config:
    """A service's file; changes: what the command line says instead."""
    found = msgspec.toml.decode(Path(path).read_bytes())
    return msgspec.convert({**found, **{name: each for name, each in changes.items() if each}}, Config)


def connected(config: Config) -> Any:
    """A client that goes on with another node, or waits, when the broker is away."""
    hosts: Sequence[str] = [each.replace("http", "ws", 1) + "/mqtt" for each in config.gateways]
    token = Path(config.token_file).read_text().strip()
    return connect(hosts, password=token, reconnect=True, begin_offline=True)
