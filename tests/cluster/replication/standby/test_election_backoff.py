"""Patience grows while leaders follow each other quickly, and is as before once one has lasted."""

import pytest

from rumq.cluster.control.records import HANDED_OVER, ShardRecord
from rumq.cluster.replication.standby.election_backoff import EARLY_SECONDS, STRETCH_MAX, ElectionBackoff


def record(epoch: int, leader: str, claim: str = "c") -> ShardRecord:
    return ShardRecord(epoch=epoch, leader=leader, claim=claim, replicas=["a", "b", "c"])


@pytest.fixture
def backoff() -> ElectionBackoff:
    return ElectionBackoff()


def test_each_leader_that_ended_early_doubles_it_up_to_a_bound(backoff: ElectionBackoff) -> None:
    stretches = []
    for epoch in range(1, 6):
        backoff.seen(record(epoch, "ab"[epoch % 2]), float(epoch))
        stretches.append(backoff.stretch)
    assert stretches == [1.0, 2.0, 4.0, STRETCH_MAX, STRETCH_MAX]


def test_a_leader_that_has_lasted_ends_it(backoff: ElectionBackoff) -> None:
    backoff.seen(record(1, "a"), 0.0)
    backoff.seen(record(2, "b"), 1.0)
    backoff.calm(1.0 + EARLY_SECONDS - 0.1)
    assert backoff.stretch == 2.0
    backoff.calm(1.0 + EARLY_SECONDS)
    assert backoff.stretch == 1.0
    backoff.seen(record(3, "a"), 1.0 + EARLY_SECONDS)
    assert backoff.stretch == 1.0


@pytest.mark.parametrize(
    "what",
    [record(2, "a"), record(2, "b", HANDED_OVER + "c"), record(1, "b"), record(2, "")],
    ids=["members changed", "handed over", "an old record", "nobody leads"],
)
def test_what_is_no_election_does_not_count(backoff: ElectionBackoff, what: ShardRecord) -> None:
    backoff.seen(record(1, "a"), 0.0)
    backoff.seen(what, 1.0)
    assert backoff.stretch == 1.0
