"""What a node of a cluster answers for all shards: queries with what there is, actions only if nobody may have missed
them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import trio_test

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.node_answer import DIRECTORY, SOCKET_NAME
from rumq.admin.operations import OPERATIONS, RequestRefused
from rumq.admin.socket.admin_socket import serve
from rumq.gateway.broker.cluster_client import ClusterClient
from rumq.gateway.broker.shard_client import ShardAway, ShardClient

MISSING = [{"shard": 2, "why": "it has no leader that lives"}]


@asynccontextmanager
async def agent(data: Path, **answer: Any) -> AsyncIterator[list[dict[str, Any]]]:
    """The agent of a node, which always says this. yields: what it was asked"""
    (data / DIRECTORY).mkdir()
    questions: list[dict[str, Any]] = []

    def said(question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question)
        return answer

    async with trio.open_nursery() as nursery:
        await nursery.start(serve, str(data / DIRECTORY), said, SOCKET_NAME)
        yield questions
        nursery.cancel_scope.cancel()


def clients(*names: str) -> dict[str, Any]:
    rows = [{"client_id": name} for name in names]
    return {"clients": [row | ROW for row in rows], "left_out": 0}


ROW = {
    "user": None, "connected": True, "address": None, "protocol": "5", "keep_alive_seconds": None,
    "since_seconds": None, "published": 0, "delivered": 0, "published_per_second": 0.0, "delivered_per_second": 0.0,
    "rate": 0.0, "in_flight": 0, "behind_records": 0, "behind_seconds": None, "undelivered": 0, "subscriptions": [],
}  # fmt: skip


@trio_test
async def test_rows_of_all_shards_that_answer_come_with_those_that_are_missing(tmp_path: Path) -> None:
    async with agent(tmp_path, replies=[clients("b"), clients("a")], missing=MISSING) as questions:
        found = await ClusterClient(str(tmp_path)).ask(OPERATIONS["clients"], q.Clients(limit=5))
    assert isinstance(found, a.Clients) and [row.client_id for row in found.clients] == ["a", "b"]
    assert msgspec.to_builtins(found.missing) == MISSING
    assert (questions[0]["ask"], questions[0]["limit"], questions[0]["here"]) == ("clients", 5, False)


@trio_test
async def test_without_any_answer_there_is_none(tmp_path: Path) -> None:
    async with agent(tmp_path, replies=[], missing=MISSING):
        with pytest.raises(ShardAway, match="shard 2 does not answer: it has no leader that lives"):
            await ClusterClient(str(tmp_path)).ask(OPERATIONS["clients"], q.Clients())
    with pytest.raises(ShardAway, match="the agent of this node does not answer"):
        await ClusterClient(str(tmp_path)).ask(OPERATIONS["clients"], q.Clients())


@pytest.mark.parametrize(
    ("action", "request_", "reply", "is_done"),
    [
        ("disconnect", q.OneClient(client="c"), {"disconnected": 1, "dropped": 0}, True),
        (
            "disconnect",
            q.OneClient(client="c"),
            {"disconnected": 0, "dropped": 0},
            False,
        ),  # it may be at shard 2
        ("reset", q.Reset(client="c", start="latest"), {"done": 1, "why": ""}, True),
        ("reset", q.Reset(client="c", start="latest"), {"done": 0, "why": ""}, False),
        ("ban", q.Ban(kind="client", name="c"), {"done": 1, "why": ""}, False),
        ("trace", q.Trace(kind="topic", name="t"), {"done": 1, "why": ""}, False),
    ],
)
@trio_test
async def test_an_action_that_a_missing_shard_may_concern_is_refused(
    tmp_path: Path, action: str, request_: q.Request, reply: dict[str, Any], is_done: bool
) -> None:
    client = ClusterClient(str(tmp_path))
    async with agent(tmp_path, replies=[reply], missing=MISSING):
        if is_done:
            await client.ask(OPERATIONS[action], request_)
        else:
            with pytest.raises(ShardAway, match="the others have done it, and asking again is safe"):
                await client.ask(OPERATIONS[action], request_)


@trio_test
async def test_a_wrong_question_is_the_askers(tmp_path: Path) -> None:
    async with agent(tmp_path, replies=[], error="cannot take sort 'x'"):
        with pytest.raises(RequestRefused, match="cannot take sort"):
            await ClusterClient(str(tmp_path)).ask(OPERATIONS["clients"], q.Clients())


@pytest.mark.parametrize("name", ["metrics", "shards"])
@trio_test
async def test_a_node_that_leads_nothing_has_no_rows_of_its_own(tmp_path: Path, name: str) -> None:
    async with agent(tmp_path, replies=[]) as questions:
        found = await ClusterClient(str(tmp_path)).ask_here(OPERATIONS[name], q.Nothing())
    assert msgspec.to_builtins(found) == {"missing": [], "shards": []} and questions[0]["here"] is True


@trio_test
async def test_of_its_own_leaders_none_may_be_missing(tmp_path: Path) -> None:
    """/readyz: a node is not ready while a shard that it leads does not answer."""
    async with agent(tmp_path, replies=[{"shards": []}], missing=MISSING):
        with pytest.raises(ShardAway):
            await ClusterClient(str(tmp_path)).ask_here(OPERATIONS["shards"], q.Nothing())


@trio_test
async def test_what_the_node_knows_of_its_cluster_is_none_without_an_agent(tmp_path: Path) -> None:
    client = ClusterClient(str(tmp_path))
    assert await client.maybe_cluster() is None
    async with agent(tmp_path, replies=[{"enabled": True, "node": "n1"}]):
        found = await client.maybe_cluster()
    assert found is not None and found.node == "n1"
    assert await ShardClient(str(tmp_path), 1).maybe_cluster() is None
