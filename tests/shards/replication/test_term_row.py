"""What the operator is told of the copies of a shard: who is in sync, who lacks how much."""

from tests.shards.replication.world import World


def test_followers_that_have_everything_are_in_sync() -> None:
    world = World("n1", "n2").begin()
    world.publish(5, 100)
    world.settle()
    row = world.replication.term_row()
    assert (row.shard, row.epoch, row.leader, row.is_open, row.has_quorum) == (0, 1, "n0", True, True)
    assert row.in_sync == ["n0", "n1", "n2"]
    assert row.behind_records == {"n1": 0, "n2": 0} and row.behind_bytes == {"n1": 0, "n2": 0}


def test_what_a_follower_has_not_synced_is_counted_in_records_and_bytes_of_all_segments() -> None:
    world = World("n1", "n2", segment_bytes_max=4096).begin()
    for _ in range(8):
        world.publish(3, 500)
        world.settle(but=("n2",))
    row = world.replication.term_row()
    assert row.behind_records == {"n1": 0, "n2": 24}
    ours = world.replication._copies.by_key["main/g1/p0"].source.segments()
    assert len(ours) > 4 and row.behind_bytes == {"n1": 0, "n2": sum(each.stop for each in ours)}
    world.settle()
    assert world.replication.term_row().behind_bytes == {"n1": 0, "n2": 0}


def test_a_follower_that_is_gone_is_not_in_sync_and_nobody_knows_what_it_lacks() -> None:
    world = World("n1", "n2").begin()
    world.followers["n2"].is_reachable = False
    world.hang_up("n2")
    world.publish()
    world.settle()
    row = world.replication.term_row()
    assert row.in_sync == ["n0", "n1"] and row.behind_records["n2"] is row.behind_bytes["n2"] is None


def test_followers_that_are_silent_are_not_in_sync() -> None:
    world = World("n1", "n2").begin()
    for _ in range(25):
        world.after(0.1, but=("n1", "n2"))
    row = world.replication.term_row()
    assert row.in_sync == ["n0"] and not row.has_quorum


def test_each_write_group_is_observed_until_a_majority_has_it() -> None:
    world = World("n1", "n2").begin()
    before = sum(world.replication.acknowledged.counts)
    world.publish()
    world.settle(but=("n1", "n2"))
    assert sum(world.replication.acknowledged.counts) == before
    world.after(0.5)
    assert sum(world.replication.acknowledged.counts) > before
    assert world.replication.acknowledged.seconds >= 0.5
