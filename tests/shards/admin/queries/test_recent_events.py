"""Recent events of one shard: what a cursor gives after new events, a full ring, a restart of the shard."""

from typing import Any

import pytest

from rumq.admin.requests import Events
from rumq.events.event_ring import EventRing
from rumq.shards.admin.queries.recent_events import RecentEvents

SHARD = 3


@pytest.fixture
def ring() -> EventRing:
    return EventRing(run=7, events_max=3)


def tell(ring: EventRing, *names: str, level: str = "info") -> None:
    for name in names:
        ring.add(1_000, level, name, f'{{"event":"{name}"}}'.encode())


def asked(ring: EventRing, **fields: Any) -> tuple[list[int], int, int]:
    """Numbers of the events, next, lost."""
    found: Any = RecentEvents(SHARD, ring).events(Events(**fields))
    assert (found["shard"], found["run"]) == (SHARD, ring.run)
    return [each["number"] for each in found["events"]], found["next"], found["lost"]


def test_without_a_cursor_the_newest_are_given(ring: EventRing) -> None:
    tell(ring, "a.a", "b.b", "c.c")
    assert asked(ring, limit=2) == ([2, 3], 4, 0)


def test_a_cursor_gives_what_came_after_it_and_says_how_many_are_no_longer_kept(ring: EventRing) -> None:
    tell(ring, "a.a", "b.b", "c.c", "d.d", "e.e")
    assert asked(ring, after=f"{SHARD}.7.4", limit=100) == ([4, 5], 6, 0)
    assert asked(ring, after=f"{SHARD}.7.2", limit=100) == ([3, 4, 5], 6, 1)
    assert asked(ring, after=f"{SHARD}.7.6", limit=100) == ([], 6, 0)


def test_a_cursor_of_an_earlier_run_or_of_other_shards_gives_this_run_from_its_begin(ring: EventRing) -> None:
    tell(ring, "a.a", "b.b")
    assert asked(ring, after=f"{SHARD}.6.900", limit=100) == ([1, 2], 3, 0)
    assert asked(ring, after="0.1.1", limit=100) == ([1, 2], 3, 0)


def test_level_and_name_choose(ring: EventRing) -> None:
    tell(ring, "client.refused", level="warning")
    tell(ring, "client.connected", "disk.low")
    assert asked(ring, level="warning", limit=100) == ([1], 4, 0)
    assert asked(ring, event="client.*", limit=100) == ([1, 2], 4, 0)


def test_a_cursor_that_no_answer_has_given_is_refused(ring: EventRing) -> None:
    with pytest.raises(ValueError, match="the cursor is none that an answer has given"):
        asked(ring, after="yesterday", limit=100)
