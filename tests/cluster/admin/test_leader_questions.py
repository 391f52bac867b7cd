"""Leaders of other nodes are asked over the cluster's connections: whole answers, in time, within bounds, and only by
who has a certificate of the cluster."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import trio_test

from rumq.cluster.admin.leader_questions import ANSWER_SECONDS_MAX, AnswerBudget, LeaderSilent, ask_leader
from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Taken
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.net.frames import encoded
from tests.cluster.admin.world import node, view_of
from tests.cluster.node_tls import agent_tls, pump_tls
from tests.net.authorities import Authorities
from tests.shards.links.world import CLUSTER, Leader, World

QUESTION = b'{"ask":"status"}'


def address_of(leader: Leader, shard: int = 0) -> LeaderAddress:
    return LeaderAddress(shard, 1, "n0#1", *leader.address, False)


def view(cluster: str = CLUSTER) -> View:
    made = view_of([node("n9")], here="n9#9")
    return View(**{name: getattr(made, name) for name in made.__struct_fields__} | {"cluster": cluster})


@asynccontextmanager
async def turning(world: World) -> AsyncIterator[None]:
    """The leaders' loops turn meanwhile."""

    async def turn() -> None:
        while True:
            world.turn()
            await trio.sleep(0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
            world.end()


async def asked(leader: Leader, tls: AgentTls | None = None, **more: object) -> object:
    return json.loads(await ask_leader(view(), address_of(leader), QUESTION, tls, AnswerBudget(), **more))  # type: ignore[arg-type]


@trio_test
async def test_a_leader_is_asked_and_its_whole_answer_comes(leaders: World) -> None:
    leader = leaders.leader(0)
    leader.answer = lambda question: {"said": question, "rows": ["x" * 1000] * 5000}
    async with turning(leaders):
        found = await asked(leader)
    assert isinstance(found, dict) and found["said"] == {"ask": "status"} and len(found["rows"]) == 5000


@trio_test
async def test_with_tls_only_who_has_a_certificate_of_the_cluster_gets_an_answer(
    leaders: World, authorities: Authorities
) -> None:
    leaders.tls = pump_tls(authorities)
    leader = leaders.leader(0)
    questions: list[object] = []

    def answer(question: object) -> dict[str, int]:
        questions.append(question)
        return {"done": 1}

    leader.answer = answer
    async with turning(leaders):
        assert await asked(leader, agent_tls(authorities, cluster=CLUSTER)) == {"done": 1}
        for stranger in (
            None,  # plain bytes
            agent_tls(authorities, "-", CLUSTER),
            agent_tls(authorities, "stranger", CLUSTER),
            agent_tls(authorities, "client", CLUSTER),  # a device of the same authority
            agent_tls(authorities, authorities.node(CLUSTER, "n8"), CLUSTER),
            agent_tls(authorities, authorities.node("c2", "n1"), CLUSTER),
        ):
            with pytest.raises(LeaderSilent):
                await asked(leader, stranger)
    assert len(questions) == 1


@pytest.mark.parametrize("who", ["stranger", "device", "other node"])
@trio_test
async def test_a_leader_without_the_clusters_certificate_is_not_believed(
    leaders: World, authorities: Authorities, who: str
) -> None:
    file = {"stranger": "stranger", "device": "client", "other node": authorities.node(CLUSTER, "n8")}[who]
    leaders.tls = pump_tls(authorities, file)
    leader = leaders.leader(0)
    async with turning(leaders):
        with pytest.raises(LeaderSilent, match="certificate"):
            await asked(leader, agent_tls(authorities, cluster=CLUSTER))


@trio_test
async def test_what_is_refused_is_said(leaders: World) -> None:
    leader = leaders.leader(0)
    async with turning(leaders):
        with pytest.raises(LeaderSilent, match="the log of the node that refuses has the reason"):
            await ask_leader(view("c2"), address_of(leader), QUESTION, None, AnswerBudget())
        with pytest.raises(LeaderSilent, match="this is shard 0, not 1"):
            await ask_leader(view(), address_of(leader, 1), QUESTION, None, AnswerBudget())


@trio_test
async def test_answers_have_a_bound_together(leaders: World) -> None:
    leader = leaders.leader(0)
    leader.answer = lambda question: {"text": "x" * 40_000}
    budget = AnswerBudget(100_000)
    async with turning(leaders):
        for _ in range(2):
            await ask_leader(view(), address_of(leader), QUESTION, None, budget)
        with pytest.raises(LeaderSilent, match="ask for fewer rows"):
            await ask_leader(view(), address_of(leader), QUESTION, None, budget)


async def served(answer: Callable[[trio.SocketStream], Awaitable[None]]) -> None:
    """Ask a leader that answers so. raises: LeaderSilent"""
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, answer, 0, host="127.0.0.1"))
        host, port = listener.socket.getsockname()
        try:
            await ask_leader(view(), LeaderAddress(0, 1, "n0#1", host, port, False), QUESTION, None, AnswerBudget())
        finally:
            nursery.cancel_scope.cancel()


def test_a_leader_that_never_answers_is_waited_for_so_long() -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def main() -> float:
        began = trio.current_time()
        with pytest.RaisesGroup(pytest.RaisesExc(LeaderSilent, match="does not answer in time")):
            await served(silent)
        return trio.current_time() - began

    waited = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.05))
    assert waited == pytest.approx(ANSWER_SECONDS_MAX, abs=0.1)


@trio_test
async def test_an_answer_that_is_cut_off_is_none() -> None:
    async def half(stream: trio.SocketStream) -> None:
        await stream.receive_some(1000)
        await stream.send_all(encoded(Taken(1)) + b'{"shards":[')
        await stream.aclose()

    with pytest.RaisesGroup(pytest.RaisesExc(LeaderSilent, match="has closed the connection")):
        await served(half)


@trio_test
async def test_nobody_there_is_said() -> None:
    with pytest.raises(LeaderSilent, match=r"n0#1 at 127\.0\.0\.1:1 cannot be asked"):
        await ask_leader(view(), LeaderAddress(0, 1, "n0#1", "127.0.0.1", 1, False), QUESTION, None, AnswerBudget())
