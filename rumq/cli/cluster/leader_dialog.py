"""An order to the leader of a shard that is on another node, over the cluster's network."""

from __future__ import annotations

import socket
import time

from rumq.cluster.agent.messages import AgentMessage, Done, Order
from rumq.cluster.connections.leaders import Leader, maybe_leader
from rumq.cluster.control.records import View
from rumq.cluster.links.frames import FrameReader, encoded
from rumq.cluster.links.greeting import Greeting, Refused

CONNECT_SECONDS_MAX = 5.0
READ_BYTES = 1 << 16


def leader_elsewhere(view: View, shard: int) -> Leader | None:
    """The leader of a shard if it is on another node than the one that was asked."""
    leader = maybe_leader(view, shard)
    return None if leader is None or leader.is_here else leader


def order_leader(view: View, leader: Leader, order: Order, seconds_max: float) -> Done:
    """Have a leader do something, and wait until it is done."""
    until = time.monotonic() + seconds_max
    where = f"{leader.node} at {leader.host}:{leader.port}"
    try:
        with socket.create_connection((leader.host, leader.port), CONNECT_SECONDS_MAX) as sock:
            greeting = Greeting("ask", view.cluster, view.node, leader.shard, leader.epoch)
            sock.sendall(encoded(greeting) + encoded(order))
            reader: FrameReader[AgentMessage | Refused] = FrameReader(AgentMessage | Refused)
            while (left := until - time.monotonic()) > 0:
                sock.settimeout(left)
                data = sock.recv(READ_BYTES)
                if not data:
                    return Done(order.request, f"{where} ended before it answered: see the status")
                for message, _ in reader.feed(data):
                    if isinstance(message, Refused):
                        return Done(order.request, f"{where} refused: {message.why}")
                    if isinstance(message, Done):
                        return message
    except TimeoutError:
        pass
    except (OSError, ValueError) as fault:
        return Done(order.request, f"{where} cannot be asked: {fault}")
    return Done(
        order.request,
        f"{where} has not answered within {seconds_max:g} s; the order may still be carried out",
    )
