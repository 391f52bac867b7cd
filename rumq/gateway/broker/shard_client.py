"""Asks the shards over their admin sockets, all at once, and merges what they say. docs/decisions/0029-gateway.md"""

from __future__ import annotations

import os
from typing import Any, Protocol

import msgspec
import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import merged
from rumq.admin.operations import AskingUser, Operation, Raw, question_of
from rumq.admin.socket.admin_client import ask_socket, socket_name
from rumq.errors import RumqError


class ShardAway(RumqError):
    """A shard does not answer: the broker is starting, stopping, or down."""


class ShardQueries(Protocol):
    """Whom the gateway asks. Both raise ShardAway, RequestRefused; ValueError for an answer of another version."""

    async def ask(self, operation: Operation, request: q.Request, reader: AskingUser | None = None) -> a.Answer:
        """The whole broker, or cluster. reader: None for who may be told of every topic"""

    async def ask_here(self, operation: Operation, request: q.Request) -> a.Answer:
        """What this node itself knows, or its leaders: nothing is missing because other nodes are away."""

    async def maybe_cluster(self) -> a.Cluster | None:
        """What this node itself knows of its cluster; None: it is none, or its agent does not answer."""


class ShardClient:
    """Of a broker alone. directory: of its data; count: of its shards"""

    def __init__(self, directory: str, count: int) -> None:
        self._directory, self.count = os.path.abspath(directory), count

    async def ask(self, operation: Operation, request: q.Request, reader: AskingUser | None = None) -> a.Answer:
        """raises: ShardAway, RequestRefused; ValueError for an answer of another version"""
        question = msgspec.json.encode(question_of(operation, request, reader)) + b"\n"
        replies: list[Raw] = [{} for _ in range(self.count)]
        faults: list[ShardAway] = []

        async def ask_shard(index: int) -> None:
            try:
                replies[index] = await self.ask_one(index, question)
            except ShardAway as away:
                faults.append(away)

        async with trio.open_nursery() as nursery:
            for index in range(self.count):
                nursery.start_soon(ask_shard, index)
        if faults:
            raise faults[0]
        return merged(operation, request, replies)

    ask_here = ask

    async def maybe_cluster(self) -> a.Cluster | None:
        return None

    async def ask_one(self, index: int, question: bytes) -> Raw:
        """Ask a shard of this machine a line of JSON. raises: ShardAway"""
        try:
            got = await ask_socket(self._directory, socket_name(index), question)
        except OSError as fault:
            raise ShardAway(f"shard {index} does not answer: {fault}") from None
        reply: dict[str, Any] = msgspec.json.decode(got)
        return reply
