"""An order to a leader on another node, which a task of the test plays."""

import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import trio_test

from rumq.cluster.control.agent_messages import Order, OrderResult
from rumq.cluster.control.leaders import LeaderAddress
from rumq.cluster.control.records import View
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.cluster.orders.leader_orders import DONE_SECONDS_MAX, order_leader
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.net.frames import MessageReader, encoded
from tests.cluster.node_tls import agent_tls, context, named
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities

ORDER = Order(7, "hand-over", 0, to="n3#3")
VIEW = View(cluster="c", node="n1#1", replicas=3, nodes=[], shards=[], is_current=True)
Play = Callable[[trio.abc.Stream], Awaitable[None]]


class Played:
    """A leader: reads a greeting and an order, which are `heard`, and then does what the test says."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.heard: list[Greeting | Order] = []

    async def serve(self, stream: trio.abc.Stream) -> None:
        reader: MessageReader[Greeting | Order] = MessageReader(Greeting | Order)
        try:
            while len(self.heard) < 2:
                if not (data := await stream.receive_some(1 << 16)):
                    return
                self.heard.extend(message for message, _ in reader.feed(data))
            await self._play(stream)
            await stream.aclose()
        except trio.BrokenResourceError:
            pass  # no certificate, or none that is believed


def says(data: bytes) -> Play:
    async def play(stream: trio.abc.Stream) -> None:
        if data:
            await stream.send_all(data)

    return play


async def ordered(leader: Played, tls: AgentTls | None = None, leader_tls: ssl.SSLContext | None = None) -> OrderResult:
    async with trio.open_nursery() as nursery:
        serve = (
            partial(trio.serve_tcp, leader.serve, 0, host="127.0.0.1")
            if leader_tls is None
            else partial(trio.serve_ssl_over_tcp, leader.serve, 0, leader_tls, host="127.0.0.1")
        )
        (listener,) = await nursery.start(serve)
        bound = listener.socket if leader_tls is None else listener.transport_listener.socket
        found = await order_leader(VIEW, LeaderAddress(0, 4, "n2#2", *bound.getsockname(), False), ORDER, tls)
        nursery.cancel_scope.cancel()
    return found


@trio_test
async def test_the_leader_is_greeted_and_its_answer_is_waited_for() -> None:
    leader = Played(says(encoded(OrderResult(7))))
    assert await ordered(leader) == OrderResult(7)
    assert leader.heard == [Greeting("ask", "c", "n1#1", 0, 4), ORDER]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (encoded(OrderResult(7, "n3 is behind")), "n3 is behind"),
        (encoded(GreetingRefused("this is shard 2")), "n2#2 at 127.0.0.1:* refused: this is shard 2"),
        (b"", "n2#2 at 127.0.0.1:* ended before it answered: see the status"),
        (b"HTTP/1.1 400 no\r\n\r\n", "n2#2 at 127.0.0.1:* cannot be asked: a frame of"),
    ],
)
@trio_test
async def test_what_was_not_done_is_said_and_what_is_no_answer_with_the_leaders_address(said: bytes, why: str) -> None:
    done = await ordered(Played(says(said)))
    first, _, last = why.rpartition("*")
    assert done.request == 7 and done.why.startswith(first) and last in done.why


def test_a_leader_that_does_not_answer_in_time_may_still_do_it() -> None:
    ended: list[bool] = []

    async def silent(stream: trio.abc.Stream) -> None:
        ended.append(not await stream.receive_some(1))  # until the other end gives up

    async def main() -> tuple[OrderResult, float]:
        began = trio.current_time()
        return await ordered(Played(silent)), trio.current_time() - began

    done, seconds = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.05))
    assert "may still be carried out" in done.why
    assert seconds == pytest.approx(DONE_SECONDS_MAX, abs=0.1)


@trio_test
async def test_a_leader_that_is_gone_is_named() -> None:
    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))  # and nobody listens
        leader = LeaderAddress(0, 4, "n2#2", *free.getsockname(), False)
        done = await order_leader(VIEW, leader, ORDER, None)
    assert done.why.startswith("n2#2 at 127.0.0.1:") and "cannot be asked" in done.why


@trio_test
async def test_with_tls_both_ends_show_a_certificate_of_the_cluster(authorities: Authorities) -> None:
    client = partial(agent_tls, authorities)

    def server(file: str = "") -> ssl.SSLContext:
        return context(authorities, ssl.PROTOCOL_TLS_SERVER, file or named(authorities, "c"))

    leader = Played(says(encoded(OrderResult(7))))
    assert await ordered(leader, client(), server()) == OrderResult(7)
    assert leader.heard == [Greeting("ask", "c", "n1#1", 0, 4), ORDER]
    for tls, leader_tls in (
        (None, server()),  # plain bytes
        (client("-"), server()),
        (client("stranger"), server()),
        (client(), server("stranger")),
        (client(), server("client")),  # a device of the same authority
        (client(), server(authorities.node("c", "n3"))),
        (client(), server(authorities.node("other", "n2"))),
    ):
        leader = Played(says(encoded(OrderResult(7))))
        done = await ordered(leader, tls, leader_tls)
        assert done.why.startswith("n2#2 at 127.0.0.1:") and leader.heard == []
