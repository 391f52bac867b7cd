"""An order goes to the leader of its shard, wherever that is, and the answer to whoever gave it."""

from collections.abc import Callable
from functools import partial

import msgspec
import trio

from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import AgentMessage, Order, OrderResult
from rumq.cluster.control.records import NodeRecord, Versioned, View
from rumq.cluster.links.greeting import Greeting
from rumq.net.frames import MessageReader, encoded
from tests.cluster.agent.world import Node, World, in_world, settle

ORDER = Order(7, "hand-over", 1, to="n3#3")


class LeaderElsewhere:
    """On a node that is not of the world. heard: greetings and orders; answer: what it says to an order, None: nothing

    ended: connections that the other end has closed"""

    def __init__(self) -> None:
        self.heard: list[Greeting | Order] = []
        self.answer: OrderResult | None = None
        self.ended = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        reader: MessageReader[Greeting | Order] = MessageReader(Greeting | Order)
        try:
            async for data in stream:
                for message, _ in reader.feed(data):
                    self.heard.append(message)
                    if isinstance(message, Order) and self.answer is not None:
                        await stream.send_all(encoded(self.answer))
        except trio.BrokenResourceError:
            pass
        self.ended += 1

    @property
    def orders(self) -> list[Order]:
        return [each for each in self.heard if isinstance(each, Order)]


async def led_elsewhere(world: World, node: Node, shard: int = 1) -> LeaderElsewhere:
    """Have a node that is none of this world lead a shard in the node's view."""
    leader = LeaderElsewhere()
    (listener,) = await world.nursery.start(partial(trio.serve_tcp, leader.serve, 0, host="127.0.0.1"))
    host, port = listener.socket.getsockname()
    tracker = node.agent.views.tracker
    assert tracker is not None and tracker.view is not None
    view = tracker.view
    other = msgspec.structs.replace(view.nodes[0], id=f"n{shard}#far", host=host, port=port - 1 - shard)
    held = view.shards[shard]
    record = msgspec.structs.replace(held.record, leader=other.id, epoch=4)
    tracker.view = with_shard(view, shard, Versioned(record, held.revision), [*view.nodes, other])
    return leader


def with_shard(view: View, shard: int, record: Versioned, nodes: list[NodeRecord]) -> View:
    shards = [*view.shards[:shard], record, *view.shards[shard + 1 :]]
    return msgspec.structs.replace(view, shards=shards, nodes=nodes)


async def until(is_so: Callable[[], object]) -> None:
    """Real sockets: turn until it came. A clock that jumps stands still meanwhile."""
    while not is_so():
        await trio.lowlevel.checkpoint()


async def answer(link: AgentSocket) -> OrderResult:
    found: list[AgentMessage] = []
    await until(lambda: found.extend(each for each in link.receive() if isinstance(each, OrderResult)) or found)
    [done] = found
    assert isinstance(done, OrderResult)
    return done


async def order_at(link: AgentSocket) -> Order:
    found: list[AgentMessage] = []
    await until(lambda: found.extend(each for each in link.receive() if isinstance(each, Order)) or found)
    [order] = found
    assert isinstance(order, Order)
    return order


async def met(*links: AgentSocket) -> None:
    """Until the agent knows them all."""
    for link in links:
        await until(link.receive)  # the view


@in_world
async def test_a_leader_on_another_node_is_asked_though_this_one_has_a_standby(world: World) -> None:
    node = await world.node("n1", replicas=1)
    leader = await led_elsewhere(world, node)
    leader.answer = OrderResult(7, "n3 is behind")
    operator, standby = node.link("operator", -1), node.link("shard", 1)
    await met(operator, standby)
    operator.send(ORDER)
    assert await answer(operator) == OrderResult(7, "n3 is behind")
    tracker = node.agent.views.tracker
    assert tracker is not None and tracker.view is not None
    assert leader.heard == [Greeting("ask", tracker.view.cluster, node.identity.id, 1, 4), ORDER]
    assert not standby.receive()


@in_world
async def test_each_operator_has_the_answer_to_his_own_order(world: World) -> None:
    node = await world.node("n1", replicas=1)
    leader, other = await led_elsewhere(world, node), await led_elsewhere(world, node, 2)
    leader.answer, other.answer = OrderResult(7, "of shard 1"), OrderResult(7, "of shard 2")
    links = [node.link("operator", -1) for _ in range(2)]
    for shard, link in zip((1, 2), links, strict=True):
        link.send(msgspec.structs.replace(ORDER, shard=shard))
    assert [await answer(link) for link in links] == [OrderResult(7, "of shard 1"), OrderResult(7, "of shard 2")]


@in_world
async def test_nobody_waits_for_another_node_once_the_operator_is_gone(world: World) -> None:
    node = await world.node("n1", replicas=1)
    leader = await led_elsewhere(world, node)
    operator = node.link("operator", -1)
    operator.send(ORDER)
    await until(lambda: leader.orders)
    assert leader.orders == [ORDER] and leader.ended == 0
    operator.close()
    await until(lambda: leader.ended and not node.agent.orders._elsewhere)
    assert (await node.view()).node == node.identity.id  # the agent goes on


@in_world
async def test_a_leader_here_or_none_at_all_is_asked_by_the_shards_process(world: World) -> None:
    node = await world.node("n1", replicas=1)
    operator, shard, stranger = node.link("operator", -1), node.link("shard", 1), node.link("shard", 2)
    await met(operator, shard, stranger)
    operator.send(ORDER)  # nobody leads
    shard.send(OrderResult((await order_at(shard)).request))
    assert await answer(operator) == OrderResult(7)
    tracker = node.agent.views.tracker
    assert tracker is not None and tracker.view is not None
    held = tracker.view.shards[1]
    led = msgspec.structs.replace(held.record, leader=node.identity.id, epoch=4)
    tracker.view = with_shard(tracker.view, 1, Versioned(led, held.revision), list(tracker.view.nodes))
    operator.send(ORDER)
    order = await order_at(shard)
    stranger.send(OrderResult(order.request, "not asked"))
    await settle()
    assert not operator.receive()
    for done in (
        OrderResult(99, "nobody asked"),
        OrderResult(order.request, "no"),
        OrderResult(order.request, "once more"),
    ):
        shard.send(done)
    await settle()
    assert operator.receive() == [OrderResult(7, "no")]


@in_world
async def test_an_order_before_the_first_view_is_answered(world: World) -> None:
    node = Node(world, "n1", replicas=1)
    node.plane.is_unreachable = True
    await node.start()
    operator = node.link("operator", -1)
    operator.send(ORDER)
    done = await answer(operator)
    assert done.request == 7 and "no process of shard 1" in done.why
