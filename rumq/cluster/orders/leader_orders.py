"""An order to the leader of a shard that is on another node, over the cluster's connections.

The agent passes it on, so an operator needs neither the nodes' certificates nor a way through their firewall."""

from __future__ import annotations

import trio

from rumq.cluster.control.agent_messages import ORDER_BYTES_MAX, AgentMessage, Order, OrderResult
from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.cluster.orders.leader_stream import AgentTls, leader_stream
from rumq.net.frames import MessageReader, encoded

DONE_SECONDS_MAX = 115.0  # a learner may have to catch up; less than an operator waits for this node
READ_BYTES = 1 << 16


async def order_leader(view: View, leader: LeaderAddress, order: Order, tls: AgentTls | None) -> OrderResult:
    """Have a leader do something, and wait until it is done. tls: None for plain bytes. A fault is an answer."""
    where = f"{leader.node} at {leader.host}:{leader.port}"
    greeting = Greeting("ask", view.cluster, view.node, leader.shard, leader.epoch)
    is_sent = False
    try:
        with trio.fail_after(DONE_SECONDS_MAX):
            stream = await leader_stream(leader, tls)
            try:
                is_sent = True
                await stream.send_all(encoded(greeting) + encoded(order))
                return OrderResult(order.request, await outcome(stream, where))
            finally:
                await trio.aclose_forcefully(stream)  # nobody waits for a farewell
    except trio.TooSlowError:
        if not is_sent:
            return OrderResult(order.request, f"{where} cannot be reached in time")
        why = f"{where} has not answered within {DONE_SECONDS_MAX:g} s; the order may still be carried out"
        return OrderResult(order.request, why)
    except (OSError, trio.BrokenResourceError, ValueError) as fault:
        return OrderResult(order.request, f"{where} cannot be asked: {fault.__cause__ or fault}")


async def outcome(stream: trio.abc.Stream, where: str) -> str:
    """Why an order was not carried out; empty if it was. raises: ValueError, for what is no answer"""
    reader: MessageReader[AgentMessage | GreetingRefused] = MessageReader(
        AgentMessage | GreetingRefused, ORDER_BYTES_MAX
    )
    while data := await stream.receive_some(READ_BYTES):
        for message, _ in reader.feed(data):
            if isinstance(message, GreetingRefused):
                return f"{where} refused: {message.why}"
            if isinstance(message, OrderResult):
                return message.why
    return f"{where} ended before it answered: see the status"
