"""Asks the leader of a shard on another node, over a connection of the cluster; bounded in time and bytes.

With mutual TLS, as all connections between nodes. `rumq.shards.links.admin_callers` answers."""

from __future__ import annotations

import msgspec
import trio

from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Answer, Greeting, GreetingRefused
from rumq.cluster.orders.leader_stream import AgentTls, leader_stream
from rumq.errors import RumqError
from rumq.net.frames import encoded, maybe_first

ANSWER_SECONDS_MAX = 8.0  # less than those wait who ask this node
ANSWERS_BYTES_MAX = 64 << 20  # of all shards together: 10,000 sessions with many filters
FIRST_BYTES_MAX = 1 << 12
READ_BYTES = 1 << 18
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


class LeaderSilent(RumqError):
    """why: it did not answer"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


class AnswerBudget:
    """Bytes that all answers to one question may have."""

    def __init__(self, bytes_max: int = ANSWERS_BYTES_MAX) -> None:
        self._left = bytes_max

    def take(self, size: int) -> None:
        """raises: ValueError"""
        self._left -= size
        if self._left < 0:
            raise ValueError("the answers are too long: ask for fewer rows")

    async def line(self, stream: trio.abc.Stream, got: bytes = b"") -> bytes:
        """A line, without its end. got: what has come of it. raises: ValueError"""
        found = bytearray(got)
        self.take(len(found))
        while not found.endswith(b"\n"):
            more = await stream.receive_some(READ_BYTES)
            if not more:
                raise ValueError("it has closed the connection")
            self.take(len(more))
            found += more
        return bytes(memoryview(found)[:-1])


async def ask_leader(
    view: View, leader: LeaderAddress, question: bytes, tls: AgentTls | None, budget: AnswerBudget, kind: str = "admin"
) -> bytes:
    """The line of JSON that it says. question: a JSON object; tls: None for plain bytes; kind: of the greeting, "copy"
    asks a node that need not lead. raises: LeaderSilent"""
    where = f"{leader.node} at {leader.host}:{leader.port}"
    greeting = Greeting(kind, view.cluster, view.node, leader.shard, leader.epoch)
    try:
        with trio.fail_after(ANSWER_SECONDS_MAX):
            async with await leader_stream(leader, tls) as stream:
                try:
                    await stream.send_all(encoded(greeting, [question]))
                    return await read_answer(stream, budget)
                finally:
                    await trio.aclose_forcefully(stream)  # nobody waits for a farewell
    except trio.TooSlowError:
        raise LeaderSilent(f"{where} does not answer in time") from None
    except (OSError, trio.BrokenResourceError, ValueError) as fault:
        raise LeaderSilent(f"{where} cannot be asked: {fault.__cause__ or fault}") from None


async def read_answer(stream: trio.abc.Stream, budget: AnswerBudget) -> bytes:
    """The line behind `Taken`. raises: ValueError"""
    got = bytearray()
    while (first := maybe_first(ANSWERS, got, FIRST_BYTES_MAX)) is None:
        more = await stream.receive_some(READ_BYTES)
        if not more:
            raise ValueError("it has closed the connection")
        got += more
    answer, _, end = first
    if isinstance(answer, GreetingRefused):
        raise ValueError(answer.why)
    return await budget.line(stream, bytes(got[end:]))
