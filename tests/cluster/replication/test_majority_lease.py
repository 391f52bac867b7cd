"""The lease of a leader: until when, by which answers, and what ends it. R15, docs/explanation/replication.md."""

from math import inf

import pytest

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.majority_lease import HOLD_SECONDS, LEASE_SECONDS, NOT_LEASED, MajorityLease

THREE = ShardRecord(epoch=1, leader="a", claim="", replicas=["a", "b", "c"])
FIVE = ShardRecord(epoch=1, leader="a", claim="", replicas=["a", "b", "c", "d", "e"])
JOINT = ShardRecord(epoch=2, leader="a", claim="", replicas=["a", "d", "e"], old_replicas=["a", "b", "c"])


@pytest.fixture
def lease() -> MajorityLease:
    return MajorityLease("a")


def answer(lease: MajorityLease, peer: str, now: float) -> None:
    lease.answered(peer, lease.sent(peer, now))


def test_followers_hold_back_longer_than_the_lease_lasts() -> None:
    assert HOLD_SECONDS > 1.1 * LEASE_SECONDS, "for clocks at different rates"


def test_a_majority_by_itself_needs_no_answer(lease: MajorityLease) -> None:
    assert lease.until(ShardRecord(epoch=1, leader="a", claim="", replicas=["a"])) == inf


def test_it_counts_from_the_sending_of_the_beat_that_was_answered(lease: MajorityLease) -> None:
    counts = [lease.sent("b", now) for now in (1.0, 1.1, 1.2)]
    assert lease.until(THREE) == -inf
    lease.answered("b", counts[0])
    assert lease.until(THREE) == 1.0 + LEASE_SECONDS
    lease.answered("b", counts[2])
    assert lease.until(THREE) == 1.2 + LEASE_SECONDS


def test_the_majority_is_as_old_as_its_oldest_answer(lease: MajorityLease) -> None:
    for peer, now in (("b", 1.0), ("c", 2.0), ("d", 3.0)):
        answer(lease, peer, now)
    assert lease.until(FIVE) == 2.0 + LEASE_SECONDS


def test_while_members_change_both_groups_must_answer(lease: MajorityLease) -> None:
    answer(lease, "b", 1.0)
    assert lease.until(JOINT) == -inf
    answer(lease, "e", 0.5)
    assert lease.until(JOINT) == 0.5 + LEASE_SECONDS


def test_an_answer_without_a_count_is_that_of_the_oldest_beat(lease: MajorityLease) -> None:
    """A node of the version before answers each beat, in order."""
    for now in (1.0, 1.1, 1.2):
        lease.sent("b", now)
    lease.answered("b", 0)
    assert lease.until(THREE) == 1.0 + LEASE_SECONDS
    lease.answered("b", 0)
    assert lease.until(THREE) == 1.1 + LEASE_SECONDS


def test_an_answer_that_promises_nothing_counts_for_nothing(lease: MajorityLease) -> None:
    lease.sent("b", 1.0)
    lease.answered("b", NOT_LEASED)
    assert lease.until(THREE) == -inf


def test_the_first_promise_over_a_link_counts_from_its_sending(lease: MajorityLease) -> None:
    lease.linked("b", 1.0)
    assert lease.until(THREE) == -inf
    lease.promised("b")
    assert lease.until(THREE) == 1.0 + LEASE_SECONDS
    lease.promised("b")
    assert lease.until(THREE) == 1.0 + LEASE_SECONDS


def test_a_link_that_ends_takes_its_part_with_it(lease: MajorityLease) -> None:
    count = lease.sent("b", 1.0)
    answer(lease, "b", 1.1)
    lease.forget("b")
    lease.answered("b", count)
    assert lease.until(THREE) == -inf


def test_once_given_up_only_what_is_sent_then_counts(lease: MajorityLease) -> None:
    before = lease.sent("b", 1.0)
    answer(lease, "c", 1.0)
    lease.begin_anew()
    lease.answered("b", before)
    lease.answered("c", 0)
    assert lease.until(THREE) == -inf
    answer(lease, "b", 1.1)
    assert lease.until(THREE) == 1.1 + LEASE_SECONDS
