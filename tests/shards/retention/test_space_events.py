"""What the operator is told of the disk, once each."""

import pytest

from rumq.shards.retention.space_events import EPISODE_SECONDS, SpaceEvents
from tests.shards.bus.world import Hand


@pytest.fixture
def hand() -> Hand:
    return Hand()


def names(hand: Hand) -> list[str]:
    return [name for name, _ in hand.events]


def low(events: SpaceEvents, takes_wanted: bool = False) -> None:
    events.low(takes_wanted, free_bytes=1, free_wanted=2, log_bytes=3)


def test_that_segments_go_is_told_once_and_once_more_when_sessions_lose_some(hand: Hand) -> None:
    events = SpaceEvents(hand, hand)
    for takes_wanted in (False, False, True, True):
        low(events, takes_wanted)
    assert names(hand) == ["disk.low", "disk.low"]


def test_it_is_over_after_a_day_without_and_only_what_went_meanwhile_is_counted(hand: Hand) -> None:
    events = SpaceEvents(hand, hand)
    events.count(7, 7, 7)
    low(events)
    events.count(1, 2, 3)
    events.maybe_eased(9)
    hand.monotonic += EPISODE_SECONDS + 1
    events.maybe_eased(9)
    events.maybe_eased(9)
    assert hand.events[1:] == [("disk.eased", {"free_bytes": 9, "segments": 1, "records": 2, "bytes": 3})]


def test_a_day_and_an_hour_before_are_told_once_each_until_it_looks_better(hand: Hand) -> None:
    events = SpaceEvents(hand, hand)
    for seconds in (100_000.0, 80_000.0, 70_000.0, 3000.0, 2000.0, None, 80_000.0):
        events.look_ahead(seconds, free_bytes=1, bytes_per_second=2.0, yields=False)
    assert [fields["seconds"] for _, fields in hand.events] == [80_000, 3000, 80_000]
