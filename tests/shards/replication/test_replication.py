"""A leader and its followers: what is committed, what is copied, and what survives which fault."""

from tests.shards.replication.world import World


def test_a_term_opens_once_a_majority_has_the_log() -> None:
    world = World("n1", "n2")
    world.followers["n1"].is_reachable = world.followers["n2"].is_reachable = False
    world.begin()
    assert not world.replication.is_open
    world.followers["n1"].is_reachable = True
    world.after(0.1)
    assert world.replication.is_open and len(world.told("cluster.term_open")) == 1
    assert world.followers["n1"].state.opened == 1


def test_what_is_written_is_copied_byte_for_byte_and_committed() -> None:
    world = World("n1", "n2").begin()
    for size in (1, 3, 200):
        world.publish(size, 100)
        world.publish(1, index=1)
        world.settle()
    assert world.main.committed_lsn == world.main.next_lsn == 204
    assert world.is_copied("n1") and world.is_copied("n2")


def test_nothing_is_committed_by_one_copy() -> None:
    world = World("n1", "n2").begin()
    world.publish()
    world.settle(but=("n1", "n2"))
    assert (world.main.durable_lsn, world.main.committed_lsn) == (1, 0)
    world.settle(but=("n2",))
    assert world.main.committed_lsn == 1


def test_nothing_is_committed_before_the_leader_has_synced_it_itself() -> None:
    """Two copies are a majority, but a leader that fails to write them writes them again elsewhere."""
    world = World("n1", "n2").begin()
    world.publish()
    world.settle(writes=False)
    assert world.followers["n1"].copies.ends()["main/g1/p0"] == 0  # the segment is opened by the group itself
    world.settle()
    world.publish()
    world.settle(writes=False)
    assert world.followers["n1"].copies.ends()["main/g1/p0"] == 2, "sent while the leader's disk writes"
    assert world.main.committed_lsn == 1
    world.settle()
    assert world.main.committed_lsn == 2
