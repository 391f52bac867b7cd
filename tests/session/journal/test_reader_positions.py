"""The positions of readers in the journal: live readers are at the watermarks, others at their cursors."""

import pytest

from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import Subscription
from rumq.session.journal.reader_positions import cursors_of, redelivered_below_of, subscribed_entry
from rumq.session.state.session import Session

WATERMARKS = [(10, 8), (20, 15)]


def reader(*, committed_only: bool = False, cursors: tuple[int, int] = (3, 4), live: bool = False) -> Reader:
    wants = GroupKey(frozenset([Subscription("a/#", 1, identifier=7)]), committed_only)
    made = Reader(2, Group(wants, 2), list(cursors), "pump")
    if live:
        for each in made.group.live:
            each.add(made)
    return made


@pytest.mark.parametrize(("committed_only", "expected"), [(False, [10, 20]), (True, [8, 15])])
def test_a_live_reader_has_everything_below_its_watermark(committed_only: bool, expected: list[int]) -> None:
    assert cursors_of(reader(committed_only=committed_only, live=True), WATERMARKS) == expected


def test_a_reader_that_is_behind_has_its_cursors() -> None:
    assert cursors_of(reader(), WATERMARKS) == [3, 4]


def test_redelivery_ends_once_the_reader_has_passed_its_bound() -> None:
    session = Session("pump", None, personal=False)
    found = session.own_subscriber().main = reader(cursors=(3, 9))
    found.redelivered_below = [5, 5]
    assert redelivered_below_of(session, WATERMARKS) == [5, 5]
    found.cursors = [5, 9]
    assert redelivered_below_of(session, WATERMARKS) == []


@pytest.mark.parametrize("kind", ["main", "late", "replay"])
def test_an_entry_has_the_subscription_its_kind_and_the_cursors_of_its_reader(kind: str) -> None:
    session = Session("pump", None, personal=False)
    session.number, subscriber, found = 1, session.own_subscriber(), reader()
    if kind == "main":
        subscriber.main = found
        subscriber.main_subscriptions = {"a/#": Subscription("a/#", 1, identifier=7)}
    else:
        subscriber.add_reader("a/#", found, is_replay=kind == "replay")
    entry = subscribed_entry(session, "a/#", WATERMARKS)
    assert entry is not None
    assert (entry.number, entry.asked, entry.qos, entry.identifier) == (1, "a/#", 1, 7)
    assert (entry.kind, entry.reader, entry.cursors) == (kind, 2, [3, 4])
    assert subscribed_entry(session, "b", WATERMARKS) is None
