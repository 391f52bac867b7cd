"""The admin socket of a node: one question, and every shard's leader answers, here or elsewhere."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import trio_test

from rumq.admin.node_answer import DIRECTORY, SOCKET_NAME, NodeAnswer, decoded
from rumq.admin.socket import admin_socket
from rumq.cluster.admin import node_admin
from rumq.cluster.admin.node_admin import LINE_BYTES_MAX, NodeAdmin
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.control_plane import ControlHealth
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting, Taken
from rumq.cluster.orders.leader_changes import LeaderChanges
from rumq.net.frames import encoded, maybe_first
from tests.cluster.admin.world import HEALTH, node, record, status_of, term, view_of

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Agent:
    """What the agent of this node knows. asked: how often the control plane was"""

    renew_seconds = 0.01

    def __init__(self, view: View | None) -> None:
        self.view, self.asked = view, 0
        self.leader_changes = LeaderChanges()

    def status(self, health: ControlHealth) -> AgentStatus:
        return status_of(self.view, health)

    async def health(self) -> ControlHealth:
        self.asked += 1
        return HEALTH


async def answer_node(answer: Answer, stream: trio.SocketStream) -> None:
    """As a leader on another node."""

    greetings: msgspec.msgpack.Decoder[Greeting] = msgspec.msgpack.Decoder(Greeting)
    got = bytearray()
    while (first := maybe_first(greetings, got, 1 << 16)) is None:
        got += await stream.receive_some(1 << 16)
    assert first[0].kind == "admin"
    await stream.send_all(encoded(Taken(1)) + json.dumps(answer(json.loads(first[1]))).encode() + b"\n")
    await stream.receive_some(1)


@asynccontextmanager
async def cluster(
    data: Path, *, here: Answer | None = None, there: Answer | None = None, **more: Any
) -> AsyncIterator[tuple[NodeAdmin, Agent]]:
    """Node a, which leads shard 0 as `here`; node b leads shard 1 as `there`; shard 2 has no leader."""
    (data / DIRECTORY).mkdir()
    async with trio.open_nursery() as nursery:
        if here is not None:
            await nursery.start(partial(admin_socket.serve, str(data), here, "ask.sock"))
        port = 1
        if there is not None:
            (listener,) = await nursery.start(partial(trio.serve_tcp, partial(answer_node, there), 0, host="127.0.0.1"))
            port = listener.socket.getsockname()[1] - 2  # shard 1 is two above
        view = view_of([node("a"), node("b", port=port)], record("a", "a"), record("b", "b"), record("", "a"))
        agent = Agent(view)
        admin = NodeAdmin(str(data), "plant", 3, agent, None, **more)
        await nursery.start(admin.run)
        yield admin, agent
        nursery.cancel_scope.cancel()


def shard(number: int) -> Answer:
    return lambda question: {"shard": number, **question}


async def asked(data: Path, **question: object) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """By way of the socket: replies, and why shards are missing."""
    async with await trio.open_unix_socket(str(data / DIRECTORY / SOCKET_NAME)) as stream:
        await stream.send_all(json.dumps(question).encode() + b"\n")
        line = bytearray()
        while not line.endswith(b"\n"):
            line += await stream.receive_some(1 << 16)
    replies, missing = decoded(line)
    return replies, {each.shard: each.why for each in missing}


@trio_test
async def test_leaders_here_and_elsewhere_answer_and_who_does_not_is_named(tmp_path: Path) -> None:
    async with cluster(tmp_path, here=shard(0), there=shard(1)):
        replies, missing = await asked(tmp_path, ask="clients", limit=7)
        assert replies == [{"shard": each, "ask": "clients", "limit": 7} for each in (0, 1)]
        assert missing == {2: "it has no leader that lives"}
        assert (tmp_path / DIRECTORY / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / DIRECTORY / SOCKET_NAME).exists()


@trio_test
async def test_leaders_that_have_died_are_missing_with_the_reason(tmp_path: Path) -> None:
    async with cluster(tmp_path):
        replies, missing = await asked(tmp_path, ask="clients")
        assert replies == [] and sorted(missing) == [0, 1, 2]
        assert "on this node, does not answer" in missing[0] and "b#0 at 127.0.0.1" in missing[1]


@trio_test
async def test_here_means_the_leaders_of_this_node_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path, here=shard(0)) as (_, agent):
        assert await asked(tmp_path, ask="shards", here=True) == ([{"shard": 0, "ask": "shards"}], {})
        agent.view = view_of([node("b")], record("b", "b"), here="a#0")
        assert await asked(tmp_path, ask="shards", here=True) == ([], {})


@trio_test
async def test_a_node_that_has_not_met_its_cluster_misses_all(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, agent):
        agent.view = None
        replies, missing = await asked(tmp_path, ask="shards", here=True)
        assert replies == [] and "has not met its cluster" in missing[2]
        (answer,), _ = await asked(tmp_path, ask="cluster")
        assert answer["enabled"] and answer["nodes"] == []


@trio_test
async def test_the_cluster_is_told_with_what_the_leaders_say(tmp_path: Path) -> None:
    def terms(leader: str, number: int) -> Answer:

        return lambda question: {"terms": [msgspec.to_builtins(term(leader, leader, shard=number))]}

    async with cluster(tmp_path, here=terms("a", 0), there=terms("b", 1)) as (_, agent):
        (answer,), _ = await asked(tmp_path, ask="cluster")
        assert [each["state"] for each in answer["shards"]] == ["ok", "ok", "no leader"]
        assert answer["control"]["members"] and agent.asked == 1
        await asked(tmp_path, ask="cluster")
        assert agent.asked == 1  # an answer of the control plane counts for a while
        (answer,), _ = await asked(tmp_path, ask="cluster", here=True)
        assert [each["state"] for each in answer["shards"]] == ["ok", "unknown", "no leader"]


def test_the_control_plane_is_asked_again_after_a_while(tmp_path: Path) -> None:
    async def main() -> int:
        admin = NodeAdmin(str(tmp_path), "plant", 1, agent := Agent(None), None)
        for _ in range(3):
            await admin.answered(b'{"ask":"cluster"}')
            await trio.sleep(node_admin.HEALTH_SECONDS / 2)
        return agent.asked

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == 2


@trio_test
async def test_an_older_leader_that_knows_no_terms_is_unknown(tmp_path: Path) -> None:
    async with cluster(tmp_path, here=lambda question: {"error": "cannot answer 'terms'"}):
        (answer,), _ = await asked(tmp_path, ask="cluster")
        assert answer["shards"][0]["state"] == "unknown"


@trio_test
async def test_a_shutdown_is_prepared_with_what_this_node_serves(tmp_path: Path) -> None:
    def prepared(question: dict[str, Any]) -> dict[str, Any]:
        return {"token": "", "seconds": 0.0, "connected": 3, "pending_bytes": 7}

    async with cluster(tmp_path, here=prepared, there=prepared):
        (answer,), _ = await asked(tmp_path, ask="prepare", seconds=5)
    assert answer["token"] and answer["seconds"] == 5
    assert (answer["connected"], answer["pending_bytes"]) == (3, 7)


@trio_test
async def test_nonsense_and_what_is_too_long_are_answers(tmp_path: Path) -> None:
    admin = NodeAdmin(str(tmp_path), "plant", 1, Agent(None), None)
    for line in (b"[]", b"{", b'{"ask":"x","y":"' + b"y" * LINE_BYTES_MAX + b'"}'):
        answer: NodeAnswer = await admin.answered(line)
        assert answer.error and not answer.replies


@trio_test
async def test_a_bug_is_an_answer_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = Agent(None)
    agent.status = None  # type: ignore[assignment, method-assign]
    answer = await NodeAdmin(str(tmp_path), "plant", 1, agent, None).answered(b'{"ask":"clients"}')
    assert "the node failed to answer: TypeError" in answer.error
