"""Two leaders that cannot reach each other are linked by way of a third one, and directly once they can.

A cut path is a listening socket with a full queue: its kernel answers no further SYN. listen(2)"""

import socket
from collections.abc import Iterator

import msgspec
import pytest

from rumq.cluster.connections.detour import DIRECT_SECONDS
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.net.frames import encoded
from rumq.shards.links.cluster_links import DIRECT_AGAIN_SECONDS
from rumq.shards.links.relay_callers import KINDS
from tests.shards.links.test_cluster_listener import answer
from tests.shards.links.world import CLUSTER, Leader, World, greeting


@pytest.fixture
def nowhere() -> Iterator[int]:
    """A port at which connections stay in SYN_SENT."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]
        for each in waiting:
            each.close()


def cut(who: Leader, other: Leader, nowhere: int) -> None:
    """What this leader sends to the other one's node goes nowhere."""
    view = who.links.view
    assert view is not None
    nodes = [
        msgspec.structs.replace(each, port=nowhere - 1 - other.index)
        if each.id == view.shards[other.index].record.leader
        else each
        for each in view.nodes
    ]
    who.links.view_changed(msgspec.structs.replace(view, nodes=nodes))


def linked_by_way_of_the_third(world: World, nowhere: int) -> tuple[Leader, Leader, Leader]:
    first, second, third = (world.leader(index) for index in range(3))
    world.see(first, second, third)
    cut(second, first, nowhere)
    second.links.dial(0)
    world.wait(DIRECT_SECONDS + 0.1)
    world.until(lambda: 0 in second.made and 1 in first.made)
    return first, second, third


def test_leaders_with_a_cut_between_them_are_linked_by_way_of_a_third_node(world: World, nowhere: int) -> None:
    first, second, third = linked_by_way_of_the_third(world, nowhere)
    assert len(third.relays) == 1
    assert (
        "shard.detoured",
        {"shard": 0, "node": second.links.view.shards[0].record.leader},
    ) in second.events
    second.made[0].write(b"there" * 1000)
    first.made[1].write(b"and back" * 1000)
    world.until(lambda: first.got(1) == b"there" * 1000 and second.got(0) == b"and back" * 1000)


def test_the_end_of_one_side_is_the_end_of_the_other(world: World, nowhere: int) -> None:
    first, second, third = linked_by_way_of_the_third(world, nowhere)
    end = second.made[0]
    first.made[1].close()
    world.until(lambda: end.closing and not len(third.relays))


def test_a_detour_ends_when_the_direct_way_works_again(world: World, nowhere: int) -> None:
    first, second, third = linked_by_way_of_the_third(world, nowhere)
    detour = second.made[0]
    world.wait(DIRECT_AGAIN_SECONDS + DIRECT_SECONDS + 0.2)
    assert second.made[0] is detour, "it is still cut"
    world.see(first, second, third)
    world.wait(DIRECT_AGAIN_SECONDS + 0.2)
    world.until(lambda: second.made[0] is not detour)
    second.made[0].write(b"directly")
    world.until(lambda: first.got(1) == b"directly")


def test_a_process_that_is_gone_is_dialled_again_and_not_looked_for_elsewhere(world: World) -> None:
    first, second, third = (world.leader(index) for index in range(3))
    world.see(first, second, third)
    first.sock.close()
    second.links.dial(0)
    world.wait(2.0)
    assert not second.made and not third.events, "its kernel refuses: no way there is cut"


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (
            Greeting("ask", CLUSTER, "n9#99999999", 0, 1),
            f"only {' and '.join(KINDS)} connections are relayed",
        ),
        (Greeting("bus", CLUSTER, "n9#99999999", 1, 1), "no other node leads shard 1"),
        (Greeting("relay", CLUSTER, "n9#99999999", 0, 1), f"only {' and '.join(KINDS)}"),
    ],
)
def test_what_is_not_relayed_is_refused(world: World, inner: Greeting, why: str) -> None:
    first, second = world.leader(0), world.leader(1)
    world.see(first, second)
    sock = world.client(second)
    raw = encoded(Greeting("relay", CLUSTER, "n9#99999999", 1, 1), [encoded(inner)])
    sock.send(raw)
    said = answer(world, sock)
    assert isinstance(said, GreetingRefused) and said.why.startswith(why)


def test_a_relay_greeting_without_another_behind_it_is_refused(world: World) -> None:
    first = world.leader(0)
    world.see(first)
    sock = world.client(first)
    sock.send(greeting("relay"))
    assert isinstance(answer(world, sock), GreetingRefused)
