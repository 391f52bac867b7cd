"""Orders to the leader of a shard, from the agent of its node or from another node: each is answered, once.

It decides nothing: a hand-over is the replication's, a change of members that of `member_change`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rumq.cluster.connections.agent_link import AgentHandler
from rumq.cluster.control.agent_messages import ORDER_BYTES_MAX, AgentMessage, Order, OrderResult
from rumq.net.connection import Connection
from rumq.net.frames import encoded
from rumq.process.shard.member_change import MemberChange
from rumq.shards.assembly.shard import Shard
from rumq.shards.links.cluster_listener import Caller
from rumq.shards.moves.client_hold import ClientHold
from rumq.shards.replication.succession import Succession

ASK_BYTES_MAX = 1 << 16
ASK_SECONDS_MAX = 150.0  # longer than whoever asks waits
OPERATORS_MAX = 64  # connections of other nodes with orders


class LeaderOrders:
    """maybe_hold: of a node that is to lead, what holds the clients for it"""

    def __init__(
        self, index: int, shard: Shard, succession: Succession, members: MemberChange,
        maybe_hold: Callable[[str], ClientHold | None],
    ) -> None:  # fmt: skip
        self._index, self._shard, self._succession, self._members = index, shard, succession, members
        self._maybe_hold = maybe_hold
        # Of each hand-over that was ordered: number of the request, what answers its sender, what flushes the answer.
        self._handing_over: list[tuple[int, Callable[[OrderResult], object], Callable[[], None]]] = []
        self._operators: set[AgentHandler] = set()  # connections of other nodes with orders

    def take_operator(self, caller: Caller) -> None:
        """Somebody at another node has orders."""
        if len(self._operators) >= OPERATORS_MAX:
            caller.refuse(f"{OPERATORS_MAX} orders of other nodes are under way: ask again")
            return
        connection = Connection(self._shard.pump, caller.sock, caller.greeting.node, ASK_BYTES_MAX)

        def heard(message: AgentMessage) -> None:
            if isinstance(message, Order):
                self.carry_out(message, lambda done: connection.write(encoded(done)), connection.flush)

        handler = connection.link = AgentHandler(
            connection, heard, lambda: self._operators.discard(handler), ORDER_BYTES_MAX
        )
        self._operators.add(handler)
        self._shard.timers.later(ASK_SECONDS_MAX, lambda: None if handler.closed else handler.end())
        self._shard.pump.add(connection)
        if caller.rest:
            self._shard.pump.feed(connection, caller.rest)

    def carry_out(self, order: Order, say: Callable[[OrderResult], object], flush: Callable[[], None]) -> None:
        def done(why: str) -> None:
            say(OrderResult(order.request, why))

        if order.shard != self._index:
            done(f"this is shard {self._index}")
        elif order.what == "hand-over":
            self._handing_over.append((order.request, say, flush))
            self._succession.hand_over(
                order.to, partial(self._not_handed_over, order.request), self._maybe_hold(order.to)
            )
        elif order.what == "members":
            self._members.begin(order.members, done)
        else:
            done(f"a leader knows nothing of {order.what}")

    def _not_handed_over(self, request: int, why: str) -> None:
        for number, say, _ in self._handing_over:
            if number == request:
                say(OrderResult(request, why))
        self._handing_over = [each for each in self._handing_over if each[0] != request]

    def answer_hand_overs(self) -> bool:
        """Another node leads: say so to whoever ordered it. returns: whether anybody did"""
        for request, say, flush in self._handing_over:
            say(OrderResult(request))
            flush()
        return bool(self._handing_over)
