"""Links between leaders on any nodes: who dials, what ends them, and which epoch they belong to."""

import pytest

from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.net.frames import encoded
from tests.shards.links.test_cluster_listener import answer
from tests.shards.links.world import CLUSTER, World, greeting


def test_each_two_leaders_have_one_link(world: World) -> None:
    leaders = [world.leader(index) for index in range(3)]
    world.see(*leaders)
    for leader in leaders:
        for shard in range(leader.index):
            leader.links.dial(shard)
    world.until(lambda: all(len(leader.made) == 2 for leader in leaders))
    for leader in leaders:
        for shard, connection in leader.made.items():
            connection.write(f"{leader.index} to {shard}".encode() * 100)
    for leader in leaders:
        for shard in leader.made:
            wanted = f"{shard} to {leader.index}".encode() * 100
            world.until(lambda leader=leader, shard=shard, wanted=wanted: leader.got(shard) == wanted)


def test_what_is_said_at_once_behind_the_greeting_is_not_lost(world: World) -> None:
    leader = world.leader(0)
    sock = world.client(leader)
    sock.send(greeting("bus", sender=1) + b"hello")
    world.until(lambda: 1 in leader.made and leader.got(1) == b"hello")


def test_a_leader_that_is_not_there_yet_is_dialled_until_it_is(world: World) -> None:
    first, second = world.leader(0), world.leader(1)
    second.links.dial(0)
    world.wait(1.0)
    world.see(None, second)
    world.wait(1.0)
    assert not second.made
    world.see(first, second)
    world.until(lambda: second.made and first.made)


def test_a_leader_that_refuses_is_dialled_again(world: World) -> None:
    """It has not heard that it leads."""
    first, second = world.leader(0), world.leader(1)
    takers = first.listener._takers
    first.listener._takers = {}
    world.see(first, second)
    second.links.dial(0)
    world.until(lambda: first.events)
    first.listener._takers = takers
    world.wait(0.5)
    world.until(lambda: second.made and first.made)


def test_a_new_leader_of_a_shard_gets_links_and_the_old_one_loses_them(world: World) -> None:
    """Of shards of higher and of lower index; the old one may still run."""
    leaders = [world.leader(index) for index in range(3)]
    world.see(*leaders)
    for leader in leaders:
        for shard in range(leader.index):
            leader.links.dial(shard)
    world.until(lambda: all(len(leader.made) == 2 for leader in leaders))
    low, _, high = leaders
    new = world.leader(1, 2)
    old_links = [low.made[1], high.made[1]]
    world.see(low, new, high)
    new.links.dial(0)
    world.until(lambda: len(new.made) == 2)
    assert low.left == [1] and high.left == [1]
    world.until(lambda: all(each.closing for each in old_links))
    world.until(lambda: 1 in low.made and 1 in high.made)
    high.made[1].write(b"to the new one")
    world.until(lambda: new.got(2) == b"to the new one")
    world.see(low, new, high)  # nothing has changed
    world.turn(5)
    assert low.left == [1] and high.left == [1]


@pytest.mark.parametrize(
    ("sender", "epoch", "why"),
    [(1, 2, "shard 1 has a leader of epoch 3"), (0, 3, "shard 0 dials shard 0")],
)
def test_a_deposed_leader_gets_no_link(world: World, sender: int, epoch: int, why: str) -> None:
    first, second = world.leader(0), world.leader(1, 3)
    world.see(first, second)
    sock = world.client(first)
    sock.send(greeting("bus", sender=sender, epoch=epoch))
    assert answer(world, sock) == GreetingRefused(why)
    assert not first.made


def test_a_leader_of_an_epoch_that_the_view_does_not_have_yet_is_linked(world: World) -> None:
    first, second = world.leader(0), world.leader(1, 3)
    world.see(first, second, epochs=(1, 2))
    second.links.dial(0)
    world.until(lambda: 1 in first.made and 0 in second.made)
    sock = world.client(first)
    sock.send(greeting("bus", sender=1, epoch=2))
    assert answer(world, sock) == GreetingRefused("shard 1 has a leader of epoch 3")


def test_a_link_belongs_to_the_epoch_that_its_leader_says(world: World) -> None:
    """Else it would be ended when the view says what the leader was already."""
    first, second = world.leader(0, 5), world.leader(1)
    world.see(first, second, epochs=(4, 1))
    second.links.dial(0)
    world.until(lambda: second.made and first.made)
    world.see(first, second)
    world.turn(3)
    assert not second.left
    world.see(world.leader(0, 6), second)
    assert second.left == [0]


def test_leaders_that_change_their_members_keep_their_links(world: World) -> None:
    """They go on in the next epoch; which of them sees the record first does not matter."""
    first, second = world.leader(0), world.leader(1)
    world.see(first, second)
    second.links.dial(0)
    world.until(lambda: second.made and first.made)
    first.epoch = second.epoch = 3
    world.see(first, second)
    world.turn(3)
    assert not first.left and not second.left
    late = world.leader(2)
    world.see(first, second, late)
    first.epoch = 4  # nobody has seen it
    late.links.dial(0)
    world.until(lambda: 0 in late.made and 2 in first.made)
    world.see(first, second, late)
    assert not late.left
    second.epoch = 2  # as a node of an older version says it
    sock = world.client(first)
    sock.send(encoded(Greeting("bus", CLUSTER, f"n1#{second.address[1]:08x}", 0, 2, sender=1)))
    world.until(lambda: not first.made[1].closing and answer(world, sock))


def test_a_leader_of_an_epoch_that_is_over_is_left_at_once(world: World) -> None:
    """Its answer is on the way when another node leads."""
    first, second = world.leader(0, 4), world.leader(1)
    world.see(first, second)
    second.links.dial(0)
    world.see(world.leader(0, 5), second)
    world.leaders.pop().end()
    world.wait(1.0)
    assert not second.made


def test_a_leader_that_is_stopped_is_left_as_soon_as_another_leads(world: World) -> None:
    """Its kernel accepts, and nobody answers: no time passes here."""
    stopped, dialler = world.leader(0), world.leader(1)
    world.see(stopped, dialler)
    world.leaders.remove(stopped)
    dialler.links.dial(0)
    world.turn(5)
    assert not dialler.made
    new = world.leader(0, 2)
    world.see(new, dialler)
    world.until(lambda: 0 in dialler.made and 1 in new.made)
    stopped.end()


def test_the_epoch_of_a_leader_elsewhere_is_that_of_the_link_to_it(world: World) -> None:
    """Copies of earlier terms are not read; nor is a copy of what this node leads itself."""
    first, second = world.leader(0, 4), world.leader(1, 2)
    world.see(first, second)
    assert second.links.epoch_elsewhere(0) == 0, "there is no link yet"
    second.links.dial(0)
    world.until(lambda: 1 in first.made and 0 in second.made)
    assert (second.links.epoch_elsewhere(0), first.links.epoch_elsewhere(1)) == (4, 2)
    assert second.links.epoch_elsewhere(7) == 0
    world.see(world.leader(0, 5), second)
    assert second.links.epoch_elsewhere(0) in (0, 5), "a link to an older leader counts no more"
