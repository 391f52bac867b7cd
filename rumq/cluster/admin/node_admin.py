"""The admin socket of a node, `<data>/_cluster/ask.sock`: one question for the whole cluster, asked of any node.

Each shard's present leader is asked, here by its own socket, elsewhere over the cluster's connections; what answers in
time is the answer, and the others are named. What concerns the node itself is answered here. docs/guides/cluster.md"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import trio

from rumq.admin import requests as q
from rumq.admin.answers import Answer, Done, Prepared, Terms
from rumq.admin.cluster_rows import MissingShard, TermRow
from rumq.admin.node_answer import DIRECTORY, HERE, SOCKET_NAME, NodeAnswer
from rumq.admin.operations import request_of
from rumq.admin.socket.admin_client import socket_name
from rumq.cluster.admin.cluster_answer import cluster_answer
from rumq.cluster.admin.leader_questions import ANSWER_SECONDS_MAX, AnswerBudget, LeaderSilent, ask_leader
from rumq.cluster.admin.node_signals import NodeSignals
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.control_plane import ControlHealth
from rumq.cluster.control.leaders import LeaderAddress, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import COPY
from rumq.cluster.orders.leader_changes import LeaderChanges
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.events.output import get_logger
from rumq.unix_address import Address

LINE_BYTES_MAX = 48 << 10  # of a question: it fits into a greeting
SECONDS_MAX = 10.0
QUESTIONS_MAX = 16  # questions that are answered at once; others wait
READ_BYTES = 1 << 18
HEALTH_SECONDS = 2.0  # an answer of the control plane's members is reused for so long
OF_THE_NODE = ("prepare", "reload", "shutdown")
PREPARE = b'{"ask":"prepare"}'
TERMS = b'{"ask":"terms"}'

log = get_logger("rumq.cluster")


class Knowledge(Protocol):
    """`rumq.cluster.agent.agent.Agent`."""

    @property
    def leader_changes(self) -> LeaderChanges: ...
    @property
    def renew_seconds(self) -> float: ...
    def status(self, health: ControlHealth) -> AgentStatus: ...
    async def health(self) -> ControlHealth: ...


class NodeAdmin:
    """cluster: its name; count: of its shards; tls: of connections to other nodes, None for plain bytes"""

    def __init__(
        self, data: str, cluster: str, count: int, agent: Knowledge, tls: AgentTls | None,
        send_signal: Callable[[signal.Signals], None] = lambda number: os.kill(os.getppid(), number),
    ) -> None:  # fmt: skip
        """send_signal: to the node's main process"""
        self._data, self._cluster, self._count, self._agent, self._tls = data, cluster, count, agent, tls
        self._signals = NodeSignals(send_signal)
        self._limit = trio.CapacityLimiter(QUESTIONS_MAX)
        self._health = ControlHealth(kind="unknown", members=[])
        self._health_at = float("-inf")
        self._asking_health = trio.Lock()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. A socket that an earlier process left is removed: the data directory is ours."""
        path = Path(self._data, DIRECTORY, SOCKET_NAME)
        path.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with Address(str(path)) as address:
                bound.bind(address)
            path.chmod(0o600)
            bound.listen(64)
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
            async with trio.open_nursery() as nursery:
                task_status.started()
                await trio.serve_listeners(self._serve, [listener], handler_nursery=nursery)
        finally:
            bound.close()
            path.unlink(missing_ok=True)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        with trio.move_on_after(SECONDS_MAX):
            try:
                async with stream:
                    line = bytearray()
                    while b"\n" not in line and len(line) <= LINE_BYTES_MAX:
                        if not (more := await stream.receive_some(READ_BYTES)):
                            return
                        line += more
                    await stream.send_all(msgspec.json.encode(await self.answered(bytes(line))) + b"\n")
            except trio.BrokenResourceError:
                pass  # it has gone

    async def answered(self, line: bytes) -> NodeAnswer:
        """The answer to a line; a fault is an answer, too."""
        try:
            if len(line) > LINE_BYTES_MAX:
                raise ValueError(f"a question has at most {LINE_BYTES_MAX:,} bytes")
            question = msgspec.json.decode(line, type=dict[str, Any])
            async with self._limit:
                return await self._answer(question)
        except ValueError as fault:  # the asker's
            return NodeAnswer(error=str(fault))
        except Exception as fault:  # ours
            log.exception("task.failed", task="question to the cluster")
            return NodeAnswer(error=f"the node failed to answer: {type(fault).__name__}")

    async def _answer(self, question: dict[str, Any]) -> NodeAnswer:
        here = question.pop(HERE, False) is True
        name = question.get("ask")
        if name == "cluster":
            return NodeAnswer(replies=[await self._about_cluster(here=here)])
        if name == COPY:
            return await self._ask_copy(question)
        if name in OF_THE_NODE:
            return await self._of_the_node(request_of(question)[1])
        return await self._ask_leaders(msgspec.json.encode(question), here=here)

    async def _of_the_node(self, asked: q.Request) -> NodeAnswer:
        """raises: ValueError"""
        if isinstance(asked, q.Prepare):
            here = await self._ask_leaders(PREPARE, here=True)
            ends = [msgspec.json.decode(each, type=Prepared) for each in here.replies]
            found: Answer = Prepared(
                token=self._signals.prepare(asked), seconds=asked.seconds,
                connected=sum(each.connected for each in ends), pending_bytes=sum(each.pending_bytes for each in ends),
            )  # fmt: skip
        else:
            self._signals.shutdown(asked) if isinstance(asked, q.Shutdown) else self._signals.reload()
            found = Done(done=1)
        return NodeAnswer(replies=[msgspec.Raw(msgspec.json.encode(found))])

    # The leaders

    async def _ask_leaders(self, question: bytes, *, here: bool) -> NodeAnswer:
        """here: only those of this node, and nobody is missing but these"""
        view = self._agent.status(self._health).view
        answer, budget = NodeAnswer(), AnswerBudget()
        if view is None:
            why = "this node has not met its cluster yet: the control plane has not answered"
            answer.missing = [MissingShard(shard=shard, why=why) for shard in range(self._count)]
            return answer
        replies: dict[int, bytes] = {}

        async def one(leader: LeaderAddress) -> None:
            try:
                replies[leader.shard] = await self._ask(view, leader, question, budget)
            except LeaderSilent as fault:
                answer.missing.append(MissingShard(shard=leader.shard, why=fault.why))

        async with trio.open_nursery() as nursery:
            for shard in range(self._count):
                leader = maybe_leader(view, shard)
                if leader is not None and (leader.is_here or not here):
                    nursery.start_soon(one, leader)
                elif leader is None and not here:
                    answer.missing.append(MissingShard(shard=shard, why="it has no leader that lives"))
        answer.replies = [msgspec.Raw(replies[shard]) for shard in sorted(replies)]
        answer.missing.sort(key=lambda each: each.shard)
        return answer

    async def _ask(self, view: View, leader: LeaderAddress, question: bytes, budget: AnswerBudget) -> bytes:
        """raises: LeaderSilent"""
        if not leader.is_here:
            return await ask_leader(view, leader, question, self._tls, budget)
        name = socket_name(leader.shard)
        try:
            with trio.fail_after(ANSWER_SECONDS_MAX), Address(f"{self._data}/{name}") as path:
                async with await trio.open_unix_socket(path) as stream:
                    await stream.send_all(question + b"\n")
                    return await budget.line(stream)
        except (OSError, trio.TooSlowError, trio.BrokenResourceError, ValueError) as fault:
            why = str(fault) or type(fault).__name__
            raise LeaderSilent(f"its leader, on this node, does not answer: {why}") from None

    async def _ask_copy(self, asked: dict[str, Any]) -> NodeAnswer:
        """A node about its copy of a shard: `rumq.cluster.node.copy_inquiries`. raises: ValueError"""
        view, node = self._agent.status(self._health).view, asked.get("node")
        found = view.node_of(node) if view is not None and isinstance(node, str) else None
        shard = asked.get("shard")
        if view is None or found is None or not isinstance(shard, int) or not 0 <= shard < self._count:
            raise ValueError("a question about a copy names a node that lives and a shard")
        to = LeaderAddress(shard, view.shards[shard].record.epoch, found.id, found.host, found.port + 1 + shard, False)
        try:
            reply = await ask_leader(view, to, msgspec.json.encode(asked["question"]), self._tls, AnswerBudget(), COPY)
        except LeaderSilent as fault:
            return NodeAnswer(missing=[MissingShard(shard=shard, why=fault.why)])
        return NodeAnswer(replies=[msgspec.Raw(reply)])

    # The cluster

    async def terms(self, *, here: bool = False) -> list[TermRow]:
        """What the leaders say of their copies; here: those on this node"""
        return rows_of((await self._ask_leaders(TERMS, here=here)).replies)

    async def _about_cluster(self, *, here: bool) -> msgspec.Raw:
        """here: without asking the control plane or other nodes"""
        health = self._health
        terms: dict[int, TermRow] = {}

        async def ask_terms() -> None:
            for row in await self.terms(here=here):
                terms[row.shard] = row

        async def ask_health() -> None:
            nonlocal health
            health = await self._fresh_health()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_terms)
            if not here:
                nursery.start_soon(ask_health)
        agent = self._agent
        found = cluster_answer(
            self._cluster, agent.status(health), agent.renew_seconds, agent.leader_changes, terms, here=here
        )
        return msgspec.Raw(msgspec.json.encode(found))

    async def _fresh_health(self) -> ControlHealth:
        async with self._asking_health:  # who comes meanwhile gets the same
            if trio.current_time() - self._health_at >= HEALTH_SECONDS:
                self._health = await self._agent.health()
                self._health_at = trio.current_time()
            return self._health


def rows_of(replies: Iterable[msgspec.Raw]) -> list[TermRow]:
    """Of the leaders that understand the question; those of older versions do not."""
    found = []
    for each in replies:
        try:
            found += msgspec.json.decode(each, type=Terms).terms
        except msgspec.MsgspecError:
            continue
    return found
