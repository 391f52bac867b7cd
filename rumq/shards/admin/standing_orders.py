"""What the operator has ordered of a shard that stays in force: bans, a drain, traces.

docs/reference/session-journal.md.
An order is carried out at once, by `AccessGate` and `Tracing`, and written into the session journal in the next turn.
It is answered once the journal is committed up to there, in a cluster by a majority. The next leader, or the next run
of this shard, puts it in force again, until it is taken back or its time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from rumq.admin import requests as q
from rumq.session.journal.entries import FOREVER_US, StandingOrder
from rumq.shards.admin.listings.listings import Answer, Done
from rumq.shards.admin.queries.parts import AdminLoop
from rumq.shards.admin.tracing import Tracing
from rumq.shards.clients.access_gate import AccessGate
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.write_path.group_commit import GroupCommit

WRITTEN_SECONDS_MAX = 5.0  # less than whoever asks waits, here (10 s) and at another node (8 s)
NOT_RECOVERED = "the shard has not recovered yet: ask again in a moment"
NOT_WRITTEN = (
    f"it is carried out, but was not durable after {WRITTEN_SECONDS_MAX:g} s: if the shard's leader or process ends, "
    "it may be forgotten; ask again"
)

Later = Callable[[Done], None]


class StandingOrders:
    """tracing: the traces of this shard; gate: refuses who is banned"""

    def __init__(
        self, index: int, loop: AdminLoop, gate: AccessGate, tracing: Tracing, journal: JournalWriter,
        commit: GroupCommit,
    ) -> None:  # fmt: skip
        self._index, self._loop, self._gate, self.tracing = index, loop, gate, tracing
        self._journal, self._commit = journal, commit
        self._unwritten: list[OrderToWrite] = []

    # From the operator

    def order_handler(self, what: str, carry_out: Callable[[Any], Answer | Later]) -> Callable[[Any], Later]:
        """A handler of a request that orders something, which `carry_out` does."""

        def handle(asked: q.Ban | q.Trace | q.Nothing) -> Later:
            now_us = self._loop.clock.now_us
            if isinstance(asked, q.Nothing):
                return self._handle(carry_out, asked, StandingOrder(what, until_us=FOREVER_US))
            return self._handle(carry_out, asked, timed_order(what, asked.kind, asked.name, asked.seconds, now_us))

        return handle

    def revocation_handler(self, what: str, carry_out: Callable[[Any], Answer | Later]) -> Callable[[Any], Later]:
        """A handler of a request that takes such an order back."""

        def handle(asked: q.Unban | q.Untrace | q.Nothing) -> Later:
            if isinstance(asked, q.Nothing):
                return self._handle(carry_out, asked, StandingOrder(what))
            return self._handle(carry_out, asked, StandingOrder(what, asked.kind, asked.name))

        return handle

    def _handle(self, carry_out: Callable[[Any], Answer | Later], asked: q.Request, order: StandingOrder) -> Later:
        """raises: ValueError, also while the orders of the run before are not known yet"""
        if not self._loop.lifecycle.is_restored:
            raise ValueError(NOT_RECOVERED)
        reply = carry_out(asked)
        writing = OrderToWrite(order)
        self._unwritten.append(writing)
        if len(self._unwritten) == 1:
            self._loop.timers.next_turn(self._write)  # between turns nobody would wake the writer

        def answer(done: Done) -> None:
            if callable(reply):
                reply(partial(writing.answer, done))
            else:
                writing.answer(done, reply)

        return answer

    def _write(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        lsn = self._journal.write_standing([each.order for each in unwritten], self._loop.clock.now_us)
        self._commit.urgent(self._journal.partition.index)
        for each in unwritten:
            self._journal.when_committed(lsn, each.ended)
            self._loop.timers.later(WRITTEN_SECONDS_MAX, partial(each.ended, NOT_WRITTEN))

    # From the journal, and for it

    def restore(self, orders: Iterable[StandingOrder], is_for_later: bool = False) -> None:
        """Put in force what an earlier run or leader left, as far as its time is not over.

        is_for_later: it is only written down, for a shard that starts later: nobody is told"""
        counts = {"ban": 0, "drain": 0, "trace": 0}
        left_out = 0
        for order in orders:
            seconds = order.seconds_left(self._loop.clock.now_us)
            if seconds <= 0.0 or order.what not in counts:
                continue
            if self._restore(order, seconds):
                counts[order.what] += 1
            else:
                left_out += 1
        if (any(counts.values()) or left_out) and not is_for_later:
            self._loop.events.tell(
                "orders.restored", shard=self._index, bans=counts["ban"], traces=counts["trace"],
                draining=bool(counts["drain"]), left_out=left_out,
            )  # fmt: skip

    def _restore(self, order: StandingOrder, seconds: float) -> bool:
        """Whether there was room for it."""
        if order.what == "drain":
            self._gate.is_draining = True
            return True
        if order.what == "ban":
            return self._gate.ban(order.kind, order.name, seconds)
        return self.tracing.resume(order.kind, order.name, seconds)

    def in_force(self) -> Iterator[StandingOrder]:
        """All, for a snapshot of the journal, which is written over many turns: each as it is when it is taken.

        What is given meanwhile may be missing: it has an entry of its own."""
        gate, clock = self._gate, self._loop.clock
        names = gate.names()

        def orders() -> Iterator[StandingOrder]:
            if gate.is_draining:
                yield StandingOrder("drain", until_us=FOREVER_US)
            for kind, name in names:
                if (seconds := gate.seconds_left(kind, name)) > 0.0:
                    yield timed_order("ban", kind, name, seconds, clock.now_us)
            for trace in self.tracing.in_force():
                yield timed_order("trace", *trace, clock.now_us)

        return orders()


class OrderToWrite:
    """An order on its way into the journal, and the answer that waits for it."""

    __slots__ = ("_call", "_why", "order")

    def __init__(self, order: StandingOrder) -> None:
        self.order = order
        self._why: str | None = None  # why it is not durable; empty: it is; None: not known yet
        self._call: Callable[[str], None] | None = None

    def ended(self, why: str = "") -> None:
        """It is durable, or has not become so in time; what is said later is too late."""
        if self._why is None:
            self._why = why
            if self._call is not None:
                self._call(why)

    def answer(self, done: Done, reply: Answer) -> None:
        """Call back with the reply once the order is durable."""

        def call(why: str) -> None:
            done({"error": why} if why else reply)

        self._call = call
        if self._why is not None:
            call(self._why)


def timed_order(what: str, kind: str, name: str, seconds: float, now_us: int) -> StandingOrder:
    return StandingOrder(what, kind, name, now_us + round(seconds * 1e6), seconds)
