"""Orders of an operator: each goes to the process of its shard, and the answer back to whoever gave it."""

from __future__ import annotations

from itertools import count

import msgspec

from rumq.cluster.agent.agent_socket import AgentServer, LocalProcess
from rumq.cluster.agent.messages import Done, Order


class OrderRouting:
    """Orders that wait for their answer, by the number under which they were passed on."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._waiting: dict[
            int, tuple[LocalProcess, int, LocalProcess]
        ] = {}  # who asked, as what, who was asked

    def order(self, asks: LocalProcess, order: Order) -> None:
        shard = self._server.maybe_shard(order.shard)
        if shard is None:
            asks.send(
                Done(
                    order.request,
                    f"this node has no process of shard {order.shard}: ask the node that leads it",
                )
            )
            return
        number = next(self._numbers)
        self._waiting[number] = (asks, order.request, shard)
        shard.send(msgspec.structs.replace(order, request=number))

    def done(self, answers: LocalProcess, done: Done) -> None:
        """An answer to what nobody asked, or not this process, is ignored."""
        asks, request, shard = self._waiting.get(done.request, (None, 0, None))
        if asks is not None and shard is answers:
            del self._waiting[done.request]
            asks.send(Done(request, done.why))

    def gone(self, process: LocalProcess) -> None:
        for number, (asks, request, shard) in list(self._waiting.items()):
            if process in (asks, shard):
                del self._waiting[number]
                if process is shard:
                    why = (
                        f"the process of shard {process.here.shard} ended before it answered: see the status"
                    )
                    asks.send(Done(request, why))
