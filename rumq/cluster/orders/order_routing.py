"""Orders of an operator: each goes to the leader of its shard, and the answer back to whoever gave it.

A leader on this node hears it from its agent, one on another node over the cluster's connections."""

from __future__ import annotations

from itertools import count

import msgspec
import trio

from rumq.cluster.connections.agent_socket import AgentServer, LocalProcess
from rumq.cluster.control.agent_messages import Order, OrderResult
from rumq.cluster.control.leaders import LeaderAddress, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.orders.leader_orders import order_leader
from rumq.cluster.orders.leader_stream import AgentTls


class OrderRouting:
    """Orders that wait for their answer: those of this node by the number under which they were passed on."""

    def __init__(self, server: AgentServer, tls: AgentTls | None = None) -> None:
        """tls: of connections to other nodes, None for plain bytes"""
        self._server, self._tls = server, tls
        self._numbers = count(1)
        # by number: (sender, its request number, the shard's process)
        self._waiting: dict[int, tuple[LocalProcess, int, LocalProcess]] = {}
        self._elsewhere: dict[trio.CancelScope, LocalProcess] = {}  # orders under way to other nodes, and their senders

    def order(self, asks: LocalProcess, order: Order, view: View | None, nursery: trio.Nursery) -> None:
        """view: None before the first; nursery: of what waits for other nodes"""
        leader = maybe_leader(view, order.shard)
        if view is None or leader is None or leader.is_here:
            self._order_here(asks, order)
            return
        scope = trio.CancelScope()
        self._elsewhere[scope] = asks
        nursery.start_soon(self._order_elsewhere, asks, order, view, leader, scope)

    def _order_here(self, asks: LocalProcess, order: Order) -> None:
        shard = self._server.maybe_shard(order.shard)
        if shard is None:
            why = f"this node has no process of shard {order.shard}, and knows no leader of it: see the status"
            asks.send(OrderResult(order.request, why))
            return
        number = next(self._numbers)
        self._waiting[number] = (asks, order.request, shard)
        shard.send(msgspec.structs.replace(order, request=number))

    async def _order_elsewhere(
        self, asks: LocalProcess, order: Order, view: View, leader: LeaderAddress, scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                asks.send(await order_leader(view, leader, order, self._tls))
        finally:
            del self._elsewhere[scope]

    def done(self, answers: LocalProcess, done: OrderResult) -> None:
        """An answer to what nobody asked, or not this process, is ignored."""
        asks, request, shard = self._waiting.get(done.request, (None, 0, None))
        if asks is not None and shard is answers:
            del self._waiting[done.request]
            asks.send(OrderResult(request, done.why))

    def gone(self, process: LocalProcess) -> None:
        for number, (asks, request, shard) in list(self._waiting.items()):
            if process in (asks, shard):
                del self._waiting[number]
                if process is shard:
                    why = f"the process of shard {process.here.shard} ended before it answered: see the status"
                    asks.send(OrderResult(request, why))
        for scope, asks in self._elsewhere.items():
            if asks is process:
                scope.cancel()
