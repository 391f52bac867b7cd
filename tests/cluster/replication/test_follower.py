"""What a leader knows of a follower: when its copy is complete, and what it lacks."""

from rumq.cluster.replication.follower import FollowerProgress

P = "main/g0/p0"


def test_a_copy_is_complete_with_what_the_leader_began_with_what_is_committed_and_what_it_acknowledged() -> None:
    follower = FollowerProgress()
    follower.synced = {P: 7}
    assert follower.has_all({P: 7}, {P: 5}) and not follower.has_all({P: 8}, {P: 5})
    assert not follower.has_all({P: 5}, {P: 8})
    follower.acknowledged = {P: 9}
    assert not follower.has_all({P: 5}, {P: 5})


def test_a_copy_that_ends_before_what_it_acknowledged_has_lost_it() -> None:
    follower = FollowerProgress()
    assert not follower.has_lost({})
    follower.acknowledged = {P: 9}
    assert follower.has_lost({}) and follower.has_lost({P: 8}) and not follower.has_lost({P: 9})


def test_what_a_follower_lacks_is_known_while_it_is_part_of_the_term() -> None:
    follower = FollowerProgress()
    assert follower.maybe_behind({P: 9}) is None
    follower.is_linked = follower.has_opened = True
    follower.synced = {P: 7}
    assert follower.maybe_behind({P: 9}) == 2
