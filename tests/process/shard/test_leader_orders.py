"""Orders to the leader of a shard: those of other nodes too, bounded, and each one answered."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.cluster.control.agent_messages import ORDER_BYTES_MAX, Order, OrderResult
from rumq.cluster.links.greeting import Greeting
from rumq.net.frames import PREFIX, MessageReader, encoded
from rumq.process.shard.leader_orders import ASK_SECONDS_MAX, OPERATORS_MAX
from tests.cluster.node.world import tcp_pair
from tests.process.shard.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (Order(1, "hand-over", 0, to="n2#2"), "this is shard 2"),
        (Order(1, "dance", 2), "a leader knows nothing of dance"),
    ],
)
def test_what_is_no_order_for_this_leader_is_answered(world: World, order: Order, why: str) -> None:
    world.leader._hear(order)
    assert world.said == [OrderResult(1, why)] and world.orders == []


def test_orders_come_from_other_nodes_too(world: World) -> None:
    near, far = tcp_pair()
    far.setblocking(False)
    greeting = Greeting("ask", "c", "n3#3", 2, 4)
    rest = encoded(Order(6, "members", 2, members=["n1#1"]))
    caller: Any = SimpleNamespace(sock=far, greeting=greeting, rest=rest)
    world.leader_orders.take_operator(caller)
    [(_, members, done)] = world.orders
    assert members == ["n1#1"]
    done("no")
    world.site.turn()  # what is said goes out at the end of one
    reader: MessageReader[OrderResult] = MessageReader(OrderResult)
    near.settimeout(30)
    assert [message for message, _ in reader.feed(near.recv(1 << 16))] == [OrderResult(6, "no")]
    near.close()


def test_orders_of_other_nodes_are_bounded_in_size_number_and_time(world: World) -> None:
    refused: list[str] = []
    nears = []
    for number in range(OPERATORS_MAX + 1):
        near, far = tcp_pair()
        far.setblocking(False)
        nears.append(near)
        if number == OPERATORS_MAX:
            far.close()
        caller: Any = SimpleNamespace(
            sock=far, greeting=Greeting("ask", "c", "n3#3", 2, 4), rest=b"", refuse=refused.append
        )
        world.leader_orders.take_operator(caller)
    assert refused == [f"{OPERATORS_MAX} orders of other nodes are under way: ask again"]
    assert len(world.leader_orders._operators) == OPERATORS_MAX
    nears[0].send(PREFIX.pack(ORDER_BYTES_MAX + 1, 16))
    world.site.until(lambda: len(world.leader_orders._operators) == OPERATORS_MAX - 1)
    for seconds, call in world.later:
        assert seconds == ASK_SECONDS_MAX
        call()
    assert not world.leader_orders._operators and not world.orders
    for near in nears:
        near.close()
