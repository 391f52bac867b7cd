"""A leader: what it is told, and what it does. The rules by number are those of docs/explanation/replication.md."""

from typing import Any

from msgspec import structs

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.leader_core import QUORUM_SECONDS, LeaderCore
from rumq.cluster.replication.majority_lease import LEASE_SECONDS

P = "main/g0/p0"
VOTERS = ["a", "b", "c"]


def record(epoch: int = 5, replicas: list[str] = VOTERS, old: list[str] | None = None) -> ShardRecord:
    return ShardRecord(epoch=epoch, leader="a", claim=f"c{epoch}", replicas=replicas, old_replicas=old)


def leader(end: int = 10, replicas: list[str] = VOTERS) -> LeaderCore:
    core = LeaderCore(5, "a", record(replicas=replicas), {P: end})
    core.start()
    return core


def kinds(core: LeaderCore) -> list[str]:
    return [
        type(each.message).__name__ if isinstance(each, fx.Send) else type(each).__name__
        for each in core.take_effects()
    ]


def link(core: LeaderCore, peer: str, opened: int = 4, end: int = 10) -> None:
    core.connected(peer)
    core.received(peer, m.Promised(core.epoch, opened, {P: end}), 0.0)
    core.received(peer, m.SegmentStates(core.epoch, P, []), 0.0)


def synced(core: LeaderCore, peer: str, lsn: int) -> None:
    core.received(peer, m.Synced(core.epoch, P, lsn, "s", 0), 0.0)


def opens(core: LeaderCore, peer: str) -> None:
    core.received(peer, m.Opened(core.epoch), 0.0)


def test_one_replica_alone_opens_at_once_and_commits_what_it_syncs() -> None:
    core = leader(replicas=["a"])
    core.written(P, 12)
    assert core.take_effects() == [fx.TermOpen(), fx.MarkCommitted(P, 10), fx.MarkCommitted(P, 12)]


def test_r4_the_term_is_open_once_a_majority_has_noted_it() -> None:
    core = leader()
    link(core, "b")
    assert kinds(core) == ["Promise", "Inventory", "FeedFollower"]
    synced(core, "b", 9)
    assert kinds(core) == []
    synced(core, "b", 10)
    assert kinds(core) == ["Complete"]
    assert not core.is_open
    opens(core, "b")
    assert core.take_effects() == [fx.TermOpen(), fx.MarkCommitted(P, 10)]


def test_r4_opened_without_everything_counts_for_nothing() -> None:
    core = leader()
    link(core, "b")
    opens(core, "b")
    assert not core.is_open


def test_r7_acknowledgements_of_a_follower_that_has_not_opened_the_term_do_not_count() -> None:
    core = leader(replicas=["a", "b", "c", "d", "e"])
    for peer in ("b", "c"):
        link(core, peer)
        synced(core, peer, 10)
        opens(core, peer)
    core.written(P, 12)
    for peer in ("d", "e"):
        link(core, peer)
        synced(core, peer, 12)
    core.written(P, 13)  # so that it is counted anew
    core.take_effects()
    assert core.committed(P) == 10
    for peer in ("d", "e"):
        opens(core, peer)
    assert core.committed(P) == 12, "nothing more needs to be said of them"


def test_r7_nothing_is_committed_that_is_not_synced_here() -> None:
    core = leader()
    for peer in ("b", "c"):
        link(core, peer)
        synced(core, peer, 10)
        opens(core, peer)
        synced(core, peer, 15)
    assert core.committed(P) == 10
    core.written(P, 13)
    assert core.committed(P) == 13


def test_what_a_follower_says_before_its_copy_is_compared_does_not_count() -> None:
    core = leader()
    core.connected("b")
    core.received("b", m.Promised(5, 4, {P: 99}), 0.0)
    synced(core, "b", 99)
    assert kinds(core) == ["Promise", "Inventory"]


def test_r5_the_mark_is_told_of_copies_that_have_opened_the_term_and_no_further_than_they_go() -> None:
    core = leader()
    link(core, "b")
    synced(core, "b", 10)
    opens(core, "b")
    link(core, "c", end=3)
    core.take_effects()
    core.tick(0.0)
    assert core.take_effects() == [
        fx.Send("b", m.Beat(5, {P: 10}, count=1)),
        fx.Send("c", m.Beat(5, {}, count=2)),
    ]


def test_r9_a_higher_promise_ends_the_term() -> None:
    core = leader()
    link(core, "b")
    core.take_effects()
    core.received("b", m.Outdated(5), 0.0)
    assert not core.is_deposed, "another link of the same term"
    core.received("b", m.Outdated(6), 0.0)
    assert core.is_deposed
    assert kinds(core) == ["Deposed"]
    core.tick(9.0)
    assert core.next_deadline == float("inf")


def test_answers_of_an_earlier_epoch_are_not_taken_for_this_one() -> None:
    core = leader()
    link(core, "b")
    core.change(6, record(6, ["a", "b", "d"], VOTERS))
    core.received("b", m.Synced(5, P, 10, "s", 0), 0.0)
    core.received("b", m.Opened(5), 0.0)
    assert not core.is_open


def test_while_members_change_both_sets_must_open_and_then_the_new_one_alone_counts() -> None:
    core = leader()
    for peer in ("b", "c"):
        link(core, peer)
        synced(core, peer, 10)
        opens(core, peer)
    core.change(6, record(6, ["a", "d", "e"], VOTERS))
    assert not core.is_open
    for peer in ("b", "d"):
        link(core, peer)
        synced(core, peer, 10)
    assert kinds(core).count("Fenced") == 1, "nothing is opened before both sets have promised"
    for peer in ("b", "d"):
        opens(core, peer)
        assert core.is_open == (peer == "d"), "b is in the old set only"
    core.settle(record(6, ["a", "d", "e"]))
    assert core.peers == ["d", "e"]
    core.written(P, 11)
    synced(core, "d", 11)
    assert core.committed(P) == 11


def test_a_joint_record_that_was_lost_and_is_written_again_settles_nothing() -> None:
    """Its claim is new, for the control plane went back; its members are those of before."""
    core = leader()
    joint = record(6, ["a", "d", "e"], VOTERS)
    core.change(6, joint)
    core.settle(structs.replace(joint, claim="again"))
    assert core.record.claim == "again" and sorted(core.peers) == ["b", "c", "d", "e"]
    for peer in ("d", "e"):
        link(core, peer)
        synced(core, peer, 10)
        opens(core, peer)
    assert not core.is_open, "a majority of the old set is wanted still"


def test_a_leader_that_is_no_member_any_more_ends() -> None:
    core = leader()
    core.change(6, record(6, ["b", "c", "d"], VOTERS))
    core.settle(record(6, ["b", "c", "d"]))
    assert core.is_deposed


def test_the_operator_is_told_once_when_too_few_answer() -> None:
    core = leader()
    for now in (0.0, 1.0, 2.1, 3.0):
        core.tick(now)
    assert core.take_effects() == [fx.QuorumLost(["b", "c"])]


def joining(**fields: Any) -> LeaderCore:
    """A leader with the only vote of a cluster that is to have three copies."""
    alone = structs.replace(record(replicas=["a"]), learners=["b", "c"], **fields)
    core = LeaderCore(5, "a", alone, {P: 10}, copies_min=2)
    core.start()
    return core


def test_r7_one_copy_of_three_commits_nothing_until_a_learner_has_it() -> None:
    core = joining()
    assert core.is_open
    core.written(P, 12)
    link(core, "b")
    synced(core, "b", 11)
    assert core.committed(P) == 0, "it has not opened the term"
    opens(core, "b")
    assert core.committed(P) == 11
    synced(core, "b", 12)
    assert core.committed(P) == 12


def test_too_few_copies_that_answer_are_told_like_a_lost_majority() -> None:
    core = joining()
    core.take_effects()
    core.tick(0.0)
    core.tick(QUORUM_SECONDS + 0.1)
    assert fx.QuorumLost(["b", "c"]) in core.take_effects() and not core.has_quorum
    core.connected("b")
    core.received("b", m.Promised(5, 4, {P: 10}), QUORUM_SECONDS + 0.2)
    core.tick(QUORUM_SECONDS + 0.3)
    assert fx.QuorumBack() in core.take_effects()


def test_a_forced_leader_goes_on_with_what_is_left() -> None:
    core = joining(forced=5)
    core.written(P, 12)
    assert core.committed(P) == 12


def beat(core: LeaderCore, peer: str, now: float) -> int:
    """The count of the beat that goes to a follower then."""
    core.take_effects()
    core.tick(now)
    return next(
        each.message.count
        for each in core.take_effects()
        if isinstance(each, fx.Send) and each.peer == peer and isinstance(each.message, m.Beat)
    )


def test_r15_the_lease_lasts_from_the_sending_of_a_beat_that_a_majority_has_answered() -> None:
    core = leader()
    for peer in ("b", "c"):
        link(core, peer)
    assert not core.holds_lease(1.0)
    count = beat(core, "b", 1.0)
    core.received("b", m.Heard(5, count=count), 1.3)
    assert core.holds_lease(1.0 + LEASE_SECONDS - 0.01) and not core.holds_lease(1.0 + LEASE_SECONDS)


def test_r15_a_leader_gives_the_lease_up_before_it_hands_over_and_with_a_link_and_when_it_is_deposed() -> None:
    for end in (
        lambda core: core.succeed("b"), lambda core: core.lost("b"), lambda core: core.depose("another leads"),
    ):  # fmt: skip
        core = leader()
        link(core, "b")
        core.received("b", m.Heard(5, count=beat(core, "b", 1.0)), 1.0)
        assert core.holds_lease(1.1)
        end(core)
        assert not core.holds_lease(1.1)


def test_r11_a_copy_that_comes_back_with_less_is_told_and_completed_with_all_that_is_committed() -> None:
    core = leader(end=0)
    for peer in ("b", "c"):
        link(core, peer, end=0)
        synced(core, peer, 0)
        opens(core, peer)
    core.written(P, 8)
    synced(core, "b", 8)
    assert core.committed(P) == 8
    core.lost("b")
    core.take_effects()
    core.connected("b")
    core.received("b", m.Promised(5, 5, {P: 0}, "c5", marks={}), 1.0)
    assert kinds(core) == ["Promise", "Distrust", "Inventory"]
    core.received("b", m.SegmentStates(5, P, []), 1.0)
    synced(core, "b", 7)
    assert kinds(core) == ["FeedFollower"], "it lacks what is committed"
    synced(core, "b", 8)
    assert kinds(core) == ["Complete"]


def test_r11_a_copy_without_its_promises_is_fed_once_every_other_voter_has_confirmed_the_term() -> None:
    core = leader()
    link(core, "c")
    synced(core, "c", 10)
    opens(core, "c")
    core.connected("b")
    core.received("b", m.Promised(5, m.DOUBTED, {P: 0}, marks={}, forgets=True), 1.0)
    core.take_effects()
    core.received("c", m.Heard(5, count=0), 1.1)
    assert "Inventory" not in kinds(core), "that was sent before the copy was asked"
    count = beat(core, "c", 1.2)
    core.received("c", m.Heard(5, count=count), 1.3)
    assert "Inventory" in kinds(core)


def test_r5_a_follower_that_knows_more_to_be_committed_ends_the_term_and_the_trust_in_this_copy() -> None:
    for said in (m.Promised(5, 4, {P: 20}, marks={P: 11}), m.Ahead(5, P, "it is committed")):
        core = leader()
        core.connected("b")
        core.received("b", said, 0.0)
        assert core.is_deposed
        assert kinds(core) == ["Promise", "OwnDoubt", "Deposed"]


def test_r2_a_replica_that_has_promised_the_epoch_to_another_claim_ends_the_term() -> None:
    core = LeaderCore(5, "a", structs.replace(record(), term="mine"), {P: 10})
    core.connected("b")
    core.received("b", m.Outdated(5, "mine"), 0.0)
    assert not core.is_deposed
    core.received("b", m.Outdated(5, "other"), 0.0)
    assert core.is_deposed


def test_r2_the_settled_members_are_told_once() -> None:
    core = leader()
    for peer in ("b", "c"):
        link(core, peer)
        synced(core, peer, 10)
        opens(core, peer)
    core.settle(structs.replace(record(), config=2))
    core.take_effects()
    core.tick(5.0)
    told = [each.message.members for each in core.take_effects() if isinstance(each, fx.Send)]
    assert [each.config for each in told if each is not None] == [2, 2]
    core.tick(6.0)
    assert {each.message.members for each in core.take_effects() if isinstance(each, fx.Send)} == {None}
