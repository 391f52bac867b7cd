"""Who is let in at a leader's port, and who is told why not."""

from typing import Any

import pytest

from rumq.cluster.links.greeting import TO_A_STRANGER, Answer, Greeting, GreetingRefused, Taken
from rumq.cluster.links.greeting_queue import GREETING_BYTES_MAX, WAITING_BYTES_MAX
from rumq.net.frames import PREFIX, MessageReader, encoded
from tests.shards.links.world import CLUSTER, Leader, World, greeting


def answer(world: World, sock: Any) -> Answer | None:
    """None: the connection was closed without one."""
    frames: MessageReader[Answer] = MessageReader(Answer)

    def read() -> list[Answer | None]:
        try:
            data = sock.recv(1 << 16)
        except BlockingIOError:
            return []
        return [message for message, _ in frames.feed(data)] if data else [None]

    return world.until(read)[0]


def refusals(leader: Leader) -> list[str]:
    return [fields["why"] for name, fields in leader.events if name == "connection.refused"]


def test_a_greeting_in_pieces_goes_to_the_taker_of_its_kind_with_what_follows(world: World) -> None:
    leader = world.leader(0)
    sock = world.client(leader)
    whole = encoded(Greeting("ask", CLUSTER, "n9#99999999", 0, 1), [b"raw"]) + b"behind"
    for byte in whole[:-6]:
        sock.send(bytes([byte]))
        world.turn()
    (caller,) = world.until(lambda: leader.callers)
    assert (caller.greeting.kind, caller.raw, caller.rest) == ("ask", b"raw", b"")
    assert not leader.site.pump.connections and len(leader.listener) == 0
    caller.answer_taken()
    assert answer(world, sock) == Taken()
    caller.sock.close()
    sock = world.client(leader)
    sock.send(whole)
    assert world.until(lambda: leader.callers[1:])[0].rest == b"behind"
    leader.callers[1].sock.close()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"shard": 1}, "this is shard 0, not 1"),
        ({"level": 9}, "this node speaks feature level 1, not 9"),
        ({"kind": "x"}, "nothing here takes a connection of the kind x"),
        ({"kind": "client", "epoch": 2}, "this leader's epoch is 1, not 2"),
        ({"kind": "client", "epoch": 0}, "this leader's epoch is 1, not 0"),
    ],
)
def test_what_does_not_belong_here_is_told_so(world: World, wrong: dict[str, Any], why: str) -> None:
    leader = world.leader(0)
    sock = world.client(leader)
    sock.send(greeting(**wrong))
    assert answer(world, sock) == GreetingRefused(why)
    assert answer(world, sock) is None
    assert refusals(leader) == [why] and not leader.callers


def test_a_stranger_is_told_nothing_but_that_it_is_refused(world: World) -> None:
    leader = world.leader(0)
    for wrong in ({}, {"shard": 1}, {"level": 9}, {"kind": "client", "epoch": 7}):
        sock = world.client(leader)
        sock.send(greeting(**{"cluster": "c2", **wrong}))
        assert answer(world, sock) == GreetingRefused(TO_A_STRANGER)
    assert refusals(leader) == ["n9#99999999: this is cluster c1, not c2"] * 4 and not leader.callers


def test_what_greets_with_nonsense_or_too_much_is_closed(world: World) -> None:
    leader = world.leader(0)
    for data in (b"GET / HTTP/1.1\r\n\r\n", encoded(Greeting("ask", CLUSTER, "", 0, 1), [bytes(1 << 16)])):
        sock = world.client(leader)
        sock.send(data)
        assert answer(world, sock) is None
    assert len(refusals(leader)) == 2 and len(leader.listener) == 0


def test_greetings_that_never_end_wait_with_a_bounded_number_of_bytes(world: World) -> None:
    leader = world.leader(0)
    begun = PREFIX.pack(GREETING_BYTES_MAX, 100) + bytes(GREETING_BYTES_MAX - 8)
    for count in range(WAITING_BYTES_MAX // GREETING_BYTES_MAX + 20):
        world.client(leader).sendall(begun)
        world.until(lambda count=count: len(leader.listener) + len(refusals(leader)) == count + 1)
        world.turn(3)
    assert "too many bytes of greetings wait" in refusals(leader)
    world.client(leader).send(greeting())
    world.until(lambda: leader.callers)[0].sock.close()


def test_who_does_not_greet_in_time_is_closed(world: World) -> None:
    leader = world.leader(0)
    sock = world.client(leader)
    sock.send(greeting()[:9])
    world.until(lambda: len(leader.listener))
    world.wait(4.5)
    assert not refusals(leader)
    world.wait(1.0)
    assert refusals(leader) == ["no greeting within 5 s"] and answer(world, sock) is None


def test_the_oldest_of_too_many_that_do_not_greet_is_closed(
    world: World,
) -> None:
    leader = world.leader(0, greetings_max=2)
    socks = []
    for count in (1, 2, 2):
        socks.append(world.client(leader))
        world.until(lambda count=count: len(leader.listener) == count)
        world.turn(3)
    assert answer(world, socks[0]) is None
    socks[2].send(greeting())
    world.until(lambda: leader.callers)[0].sock.close()


def test_a_bug_of_a_taker_ends_that_connection_alone(world: World) -> None:
    leader = world.leader(0)
    sock = world.client(leader)
    sock.send(greeting("fails"))
    assert answer(world, sock) is None
    assert [name for name, _ in leader.events] == ["task.failed"]
    world.client(leader).send(greeting())
    world.until(lambda: leader.callers)[0].sock.close()


def test_the_socket_outlives_the_listener(world: World) -> None:
    """The next leader accepts what has connected meanwhile."""
    leader = world.leader(0)
    leader.listener.close()
    sock = world.client(leader)
    world.turn(3)
    later, _ = leader.sock.accept()
    later.send(b"here")
    assert world.until(lambda: sock.recv(9)) == b"here"
    later.close()
