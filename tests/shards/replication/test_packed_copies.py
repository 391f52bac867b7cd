"""A leader and followers that pack, each for itself: whoever was away gets what it lacks, and nobody doubts."""

import pytest
from msgspec import structs

from commitlog.read.copy_digest import marked_view
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.packing_members import PATIENCE_SECONDS
from tests.commitlog.records import index, pack, viewed
from tests.shards.replication.world import Follower, World

KEY = "main/g1/p0"


def lone(world: World, count: int) -> None:
    for _ in range(count):
        world.publish()
        world.settle()


def pack_leader(world: World) -> int:
    index(world.main)
    return pack(world.main, world.replication.packable_below(world.main))


def pack_copies(copies: NodeLogCopies, salt: int) -> int:
    packed = 0
    for _ in range(20):
        copies.work()
        if copies._indexing is not None:
            copies._indexing.result()
    while (found := copies.take_packing(salt + 2 * packed)) is not None:
        key, packing = found
        while not packing.step():
            pass
        packed += packing.packed is not None and copies.replace_packed(key, packing)
    return packed


def everything(follower: Follower) -> list[object]:
    view = marked_view(follower.files, "data", KEY)
    assert view is not None
    found, gaps = viewed(view)
    assert gaps == []
    return list(found)


def able(world: World) -> World:
    """Every node says that it knows packed copies."""
    mine = structs.replace(world.view.nodes[0], id="n0", packs=True)
    nodes = [structs.replace(each, packs=True) for each in world.view.nodes]
    world.view = structs.replace(world.view, nodes=[mine, *nodes])
    world.replication.seen(world.view)
    assert world.replication.packable_below(world.main) == 0, "a node may just have gone, unseen"
    for _ in range(round(PATIENCE_SECONDS) + 1):
        world.after(1.0)
    return world


def test_what_may_be_packed_is_committed_and_nobody_is_sent_it() -> None:
    world = World("n1", "n2", segment_bytes_max=1 << 16).begin()
    lone(world, 30)
    assert world.replication.packable_below(world.main) == 0, "nobody has said that it knows packed files"
    able(world)
    assert world.replication.packable_below(world.main) == world.main.committed_lsn == 30
    world.publish()
    world.settle(but=("n1", "n2"))
    assert world.main.durable_lsn == 31 and world.replication.packable_below(world.main) == 30
    world.settle()
    world.replication._copies.by_key[KEY].source.lagging = 1
    assert world.replication.packable_below(world.main) == 0
    world.replication._copies.by_key[KEY].source.lagging = 0
    world.replication.seen(structs.replace(world.view, nodes=world.view.nodes[1:]))
    assert world.replication.packable_below(world.main) == 0, "one is away"


@pytest.mark.parametrize("durability", ["quorum", "disk"])
def test_of_a_stream_that_is_committed_by_its_disk_alone_a_majority_has_what_is_packed(durability: str) -> None:
    """What only the leader has may have to be cut."""
    world = able(World("n1", "n2", segment_bytes_max=1 << 16, durability=durability).begin())
    lone(world, 5)
    world.publish()
    world.settle(but=("n1", "n2"))
    assert world.main.committed_lsn == (6 if durability == "disk" else 5)
    assert world.replication.packable_below(world.main) == 5


@pytest.mark.parametrize(("had", "is_sent_again"), [(3, True), (15, False), (20, True)])
@pytest.mark.parametrize("packs", [True, False])
def test_a_follower_that_was_away_is_sent_what_it_lacks_of_a_packed_log(
    had: int, is_sent_again: bool, packs: bool
) -> None:
    """It may have a part of the first segment of 15, all of it, or it packed and a part of the next one."""
    world = able(World("n1", "n2", segment_bytes_max=1 << 16).begin())
    lone(world, had)
    world.after(0.1)  # what is committed is told
    late = world.followers["n2"]
    if packs:
        pack_copies(late.copies, 1 << 40)
    world.hang_up("n2")
    late.is_reachable = False
    lone(world, 40)
    world.after(0.1)
    assert pack_leader(world) > 1
    late.is_reachable = True
    late.heard.clear()
    world.after(2.0)
    lone(world, 1)
    world.after(0.1)
    [cut] = [each for each in late.kinds(m.Cut) if each.partition == KEY]
    assert cut.drop == [] and cut.name == "" and bool(cut.refill) == is_sent_again
    assert not world.told("cluster.copies_disagree") and not late.kinds(m.Distrust) and not world.ended
    assert len(everything(late)) == len(everything(world.followers["n1"])) == had + 41
    assert everything(late) == everything(world.followers["n1"])


def test_a_follower_that_packs_while_it_follows_is_compared_with_its_leader_anew() -> None:
    world = able(World("n1", "n2", segment_bytes_max=1 << 16).begin())
    lone(world, 40)
    world.after(0.1)
    for salt, follower in enumerate(world.followers.values(), 1):
        assert pack_copies(follower.copies, salt << 40) > 1
    for peer in world.followers:
        world.hang_up(peer)
        world.followers[peer].heard.clear()
    world.after(2.0)
    lone(world, 3)
    world.after(0.1)
    for follower in world.followers.values():
        assert [each for each in follower.kinds(m.Open) if each.partition == KEY] == [], "nothing is sent again"
        assert len(everything(follower)) == 43
    assert world.main.committed_lsn == 43


def test_a_packed_follower_takes_office_and_the_old_leader_follows_it() -> None:
    """With the files of its own log as they were written, and a part of the last one that nobody else has."""
    world = able(World("n1", "n2", segment_bytes_max=1 << 16).begin())
    lone(world, 40)
    world.after(0.1)
    next_leader = world.followers["n1"]
    assert pack_copies(next_leader.copies, 1 << 40) > 1
    world.publish(3)
    world.settle(but=("n1", "n2"))  # it dies with these
    old = Follower("n9")
    old.files = world.files.after_kill()
    old.begin()
    next_leader.copies.close()
    world.hang_up("n2")
    others = {"n2": world.followers["n2"], "n9": old}
    again = World(files=next_leader.files.after_kill(), epoch=2, followers=others, segment_bytes_max=1 << 16)
    again.begin()
    lone(again, 5)
    again.after(0.1)
    assert old.copies.ends()[KEY] == others["n2"].copies.ends()[KEY] == 45 == again.main.committed_lsn
    again.after(0.1)
    again.publish()  # its chunk says what is committed
    again.settle()
    assert everything(old) == everything(others["n2"]) and len(everything(old)) >= 45
    assert not again.told("cluster.copies_disagree") and not again.ended
