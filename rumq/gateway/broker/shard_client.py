"""Asks the shards over their admin sockets, all at once, and merges what they say. docs/decisions/0029-gateway.md"""

from __future__ import annotations

import os
from typing import Any, Protocol

import msgspec
import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import merged
from rumq.admin.operations import Operation, Raw, Reader, question_of
from rumq.admin.socket.admin_socket import reachable
from rumq.errors import RumqError

ANSWER_SECONDS_MAX = 10.0
READ_BYTES = 1 << 18


class Away(RumqError):
    """A shard does not answer: the broker is starting, stopping, or down."""


class Shards(Protocol):
    """Whom the gateway asks. Both raise Away, RequestRefused; ValueError for an answer of another version."""

    async def ask(self, operation: Operation, request: q.Request, reader: Reader | None = None) -> a.Answer:
        """The whole broker, or cluster. reader: None for who may be told of every topic"""

    async def ask_here(self, operation: Operation, request: q.Request) -> a.Answer:
        """What this node itself knows, or its leaders: nothing is missing because other nodes are away."""

    async def maybe_cluster(self) -> a.Cluster | None:
        """What this node itself knows of its cluster; None: it is none, or its agent does not answer."""


class ShardClient:
    """Of a broker alone. directory: of its data; count: of its shards"""

    def __init__(self, directory: str, count: int) -> None:
        self._directory, self.count = os.path.abspath(directory), count

    async def ask(self, operation: Operation, request: q.Request, reader: Reader | None = None) -> a.Answer:
        """raises: Away, RequestRefused; ValueError for an answer of another version"""
        question = msgspec.json.encode(question_of(operation, request, reader)) + b"\n"
        replies: list[Raw] = [{} for _ in range(self.count)]
        faults: list[Away] = []

        async def one(index: int) -> None:
            try:
                replies[index] = await self.ask_one(index, question)
            except Away as away:
                faults.append(away)

        async with trio.open_nursery() as nursery:
            for index in range(self.count):
                nursery.start_soon(one, index)
        if faults:
            raise faults[0]
        return merged(operation, request, replies)

    ask_here = ask

    async def maybe_cluster(self) -> a.Cluster | None:
        return None

    async def ask_one(self, index: int, question: bytes) -> Raw:
        """Ask a shard of this machine a line of JSON. raises: Away"""
        name = "ask.sock" if index == 0 else f"ask-{index}.sock"
        try:
            got = await said_back(self._directory, name, question)
        except Away as fault:
            raise Away(f"shard {index} does not answer: {fault}") from None
        reply: dict[str, Any] = msgspec.json.decode(got)
        return reply


async def said_back(directory: str, name: str, question: bytes) -> bytearray:
    """The line that one socket answers. question: a line. raises: Away"""
    got = bytearray()
    try:
        with trio.fail_after(ANSWER_SECONDS_MAX), reachable(directory, name) as path:
            async with await trio.open_unix_socket(path) as stream:
                await stream.send_all(question)
                while not got.endswith(b"\n") and (more := await stream.receive_some(READ_BYTES)):
                    got += more
    except (OSError, trio.TooSlowError, trio.BrokenResourceError) as fault:
        raise Away(f"{fault or type(fault).__name__}") from None
    if not got:
        raise Away("it closed the connection")
    return got
