"""Three nodes whose shard 0 moves while clients commit: the real seats, services and kept values, over a log that a
majority has or has not.

Replication itself is tested elsewhere: here a leader's log is a list, of which the cluster has committed a beginning. A
deposed leader goes on until it is told; what it is told of is what was committed while it led. What the Kafka server
asks its leader arrives when the test says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rumq.admin.socket.kept_values import KeptQuestion, KeptReply
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import KafkaGroupKey
from rumq.kafka.nodes.group_seat import GroupSeat, first_generation
from rumq.kafka.nodes.shard_commits import ShardCommits
from rumq.kafka.protocol.errors import ErrorCode
from rumq.session.journal.entries import KeptValue, Layout
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.admin.kept_values import KeptValues
from tests.kafka.groups.group_clients import BOUNDS, GroupClient

NODES = 3
KEY = KafkaGroupKey("anna", "tools")  # a group without members, whose offsets are committed
Record = tuple[KeptValue, ...]


class Term:
    """What one leader does: the journal, the timers and the gate of its `KeptValues`.

    log: its journal; own_from: where its own records begin; heard: up to where it knows it to be committed"""

    def __init__(self, world: World, node: int, adopted: list[Record]) -> None:
        self.world, self.node = world, node
        self.log, self.own_from, self.heard = list(adopted), len(adopted), 0
        self.is_dead = False
        self.asking: list[Asking] = []
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self.partition = SimpleNamespace(index=0)
        self.clock = SimpleNamespace(now_us=0)
        self.lifecycle = SimpleNamespace(is_restored=True)
        self.timers = SimpleNamespace(next_turn=lambda call: call(), later=world.later)
        part: Any = self  # plays the loop, the journal, the writer and the gate
        self.kept = KeptValues(part, part, SimpleNamespace(urgent=lambda index: None), part)  # type: ignore[arg-type]
        state = ReplayedState()
        state.apply([Layout(("main/g1/p0",), kept=record) for record in adopted])
        self.kept.restore(state.kept)

    def die(self) -> None:
        """Whoever waits for an answer sees the connection end."""
        self.is_dead = True
        for each in self.asking:
            each.answered.set()

    def write_standing(self, values: list[KeptValue], now_us: int) -> int:
        self.log.append(tuple(values))
        return len(self.log)

    def when_committed(self, lsn: int, call: Callable[[], None]) -> None:
        self._waiting.append((lsn, call))

    def when_open(self, call: Callable[[], None]) -> None:
        """By the lease: never once another leader was chosen."""
        if self.world.leader is self:
            call()

    def hear(self) -> None:
        """Followers' acknowledgements arrive: also those that were sent before another leader was chosen."""
        if self.is_dead:
            return
        committed = self.world.committed
        while self.heard < min(len(self.log), len(committed)) and self.log[self.heard] is committed[self.heard]:
            self.heard += 1
        while self._waiting and self._waiting[0][0] <= self.heard:
            self._waiting.pop(0)[1]()


class Seat:
    """The Kafka server's part of a node, as one process."""

    def __init__(self, world: World, node: int) -> None:
        self.world, self.node = world, node
        self.view: Any = SimpleNamespace(leads_here=world.leader.node == node, unable=[], take=lambda view: None)
        self.seat = GroupSeat(self.view, self.ask, self.make, lambda *_, **__: None)
        self.is_dead = False
        self.scope = trio.CancelScope()

    async def run(self) -> None:
        with self.scope:
            await self.seat.run()

    def see(self) -> None:
        self.view.leads_here = self.world.leader.node == self.node
        self.seat.see(None)  # type: ignore[arg-type]

    async def make(self, commits: ShardCommits) -> GroupService:
        return GroupService(
            commits, BOUNDS, 1 << 40, lambda *_, **__: None, lambda: 0, first_generation(commits.turn)
        )  # fmt: skip

    async def ask(self, asked: KeptQuestion, seconds: float) -> KeptReply:
        """Of whoever leads on this node when it is asked."""
        term = self.world.on_node[self.node]
        if term is None or term.is_dead:
            raise FileNotFoundError("nobody leads here")
        asking = Asking(term, asked)
        self.world.asked.append(asking)
        with trio.move_on_after(seconds):
            await asking.answered.wait()
        if asking.reply is None:
            raise TimeoutError("no answer")
        return asking.reply


class Asking:
    """A question on its way; it arrives also when nobody waits for the answer any more."""

    def __init__(self, term: Term, asked: KeptQuestion) -> None:
        self.term, self.asked = term, asked
        self.answered = trio.Event()
        self.reply: KeptReply | None = None
        term.asking.append(self)

    def arrive(self) -> None:
        if self.term.is_dead:
            return
        question = msgspec.json.decode(msgspec.json.encode(self.asked))
        self.term.kept.answer(question)(self._done)

    def _done(self, reply: dict[str, Any]) -> None:
        if self.term.is_dead:
            return
        self.reply = msgspec.json.decode(msgspec.json.encode(reply), type=KeptReply)
        self.answered.set()


class World:
    """committed: records that a majority has, which all later leaders have; leader: the newest

    told: by partition, the highest offset that a client was answered, of a commit or a fetch"""

    def __init__(self, nursery: trio.Nursery, clock: MockClock) -> None:
        self.nursery, self.clock = nursery, clock
        self.committed: list[Record] = []
        self.asked: list[Asking] = []
        self.held: list[Asking] = []  # on their way for long
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.on_node: list[Term | None] = [None] * NODES
        self.terms: list[Term] = []
        self.leader = self._lead(0, [])
        self.seats = [self._seat(node) for node in range(NODES)]
        self.told: dict[int, int] = {}
        self.next_offset = itertools.count(1)
        self.clients: list[GroupClient | None] = [None] * 4
        self.given: dict[tuple[int, int], str] = {}  # (generation, partition) -> member
        self.answers = 0

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((trio.current_time() + seconds, call))

    def _lead(self, node: int, log: list[Record]) -> Term:
        term = self.on_node[node] = Term(self, node, log)
        self.terms.append(term)
        return term

    def _seat(self, node: int) -> Seat:
        seat = Seat(self, node)
        self.nursery.start_soon(seat.run)
        return seat

    # What happens to the cluster

    def elect(self, node: int, tail: int, *, dies: bool) -> None:
        """Another leader, on any node; its log has what is committed and some of what the last one wrote.

        dies: the last one has, else it goes on without knowing; where both are of one node, it has died"""
        last = self.leader
        if dies:
            last.die()
        if (old := self.on_node[node]) is not None:
            old.die()
        count = len(self.committed)
        self.leader = self._lead(node, last.log[: count + tail])
        self.seats[node].see()

    def replicate(self) -> None:
        """A majority has what the leader wrote; the leader is yet to hear it."""
        self.committed = list(self.leader.log)

    def restart(self, node: int) -> None:
        """kill -9 of the Kafka server of a node: what it has asked may arrive later."""
        self.seats[node].scope.cancel()
        self.seats[node] = self._seat(node)

    def arrive(self, which: int) -> None:
        if self.asked:
            self.asked.pop(which % len(self.asked)).arrive()

    def hold(self) -> None:
        """What is on its way stays there, however much else arrives."""
        self.held += self.asked
        self.asked = []

    def release(self) -> None:
        self.asked += self.held
        self.held = []

    def wait(self, seconds: float) -> None:
        self.clock.jump(seconds)
        due = [each for each in self.timers if each[0] <= trio.current_time()]
        self.timers = [each for each in self.timers if each not in due]
        for _, call in due:
            call()

    async def settle(self) -> None:
        """Nothing hinders the newest leader for a while."""
        for _ in range(16):
            for seat in self.seats:
                seat.see()
            await wait_all_tasks_blocked()
            while self.asked:
                self.arrive(0)
            self.replicate()
            for term in self.terms:
                term.hear()
            await wait_all_tasks_blocked()
            self.wait(0.25)

    # What clients do

    def commit(self, partition: int, node: int) -> None:
        """Each offset is higher than all before; a client that gives up goes on with the next one."""
        groups = self.seats[node].seat.groups
        if groups is not None:
            self.nursery.start_soon(self._commit, groups, partition, next(self.next_offset))

    async def _commit(self, groups: GroupService, partition: int, offset: int) -> None:
        entry = Commit(*KEY, "main", partition, offset, -1, "", 0)
        if await groups.commit(KEY, [entry]) == ErrorCode.NONE:
            self.told[partition] = max(offset, self.told.get(partition, 0))
            self.answers += 1

    def fetch(self, partition: int, node: int) -> None:
        groups = self.seats[node].seat.groups
        if groups is not None:
            self.nursery.start_soon(self._fetch, groups, partition, self.told.get(partition, 0))

    async def _fetch(self, groups: GroupService, partition: int, told: int) -> None:
        """told: when it was asked"""
        if not await groups.is_current():
            return
        commit = groups.offsets.of(KEY).get(("main", partition))
        found = 0 if commit is None else commit.offset
        assert found >= told, f"partition {partition} went back from {told} to {found}"
        self.told[partition] = max(found, self.told.get(partition, 0))
        self.answers += 1

    def find(self, client: int, node: int) -> None:
        """A member takes a node for the coordinator, which perhaps it is no more."""
        groups = self.seats[node].seat.groups
        if groups is None:
            return
        known = self.clients[client]
        if known is None:
            self.clients[client] = GroupClient(groups.coordinator, f"c{client}")
        elif known._groups is not groups.coordinator:
            known.loses_answers()
            known._groups = groups.coordinator

    async def gather(self) -> None:
        """All members find the leader's node, and are dealt partitions."""
        await self.settle()
        for client in range(len(self.clients)):
            self.find(client, self.leader.node)
        self.steps()

    def steps(self) -> None:
        for _ in range(9):
            for client in range(len(self.clients)):
                self.step(client)
            self.wait(0.1)

    def leave(self) -> None:
        """All members, so that the group is forgotten."""
        for each in self.clients:
            if each is not None:
                each.leave(trio.current_time())

    def step(self, client: int) -> None:
        known = self.clients[client]
        if known is None:
            return
        for seat in self.seats:
            if seat.seat.groups is not None:
                seat.seat.groups.coordinator.advance(trio.current_time())
        known.step(trio.current_time())
        for generation, who, owned in known.told:
            for partition in owned:
                held = self.given.setdefault((generation, partition), who)
                assert held == who, f"partition {partition} has two owners in generation {generation}"
        known.told = []
