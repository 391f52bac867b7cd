"""A publisher waits while it is too far ahead, and not for ever."""

from pathlib import Path

import pytest

from bench import progress
from bench.progress import Lead, Progress


@pytest.fixture
def counters(tmp_path: Path) -> Progress:
    path = tmp_path / "progress"
    progress.create(path, publishers=3, workers=(2, 2))
    return Progress(path, 3, (2, 2))


def test_two_mappings_of_one_file_share_its_numbers(tmp_path: Path) -> None:
    progress.create(tmp_path / "p", 3, (1, 1))
    one, other = Progress(tmp_path / "p", 3, (1, 1)), Progress(tmp_path / "p", 3, (1, 1))
    one.sent[2], one.offered[0], one.ended[0], one.position[0] = 1, 2, 3, 4
    assert (other.sent[2], other.offered[0], other.ended[0], other.position[0]) == (1, 2, 3, 4)


def test_room_is_the_lead_less_what_is_sent_and_not_yet_got_by_all(counters: Progress) -> None:
    lead = Lead(counters, 100, deliveries_per_message=5)
    assert lead.room() == 100
    counters.offered[0], counters.offered[1] = 60, 60
    assert lead.room() == -20
    counters.position[0], counters.position[1] = 100, 150
    assert lead.room() == 30


def test_with_nobody_subscribed_there_is_nobody_to_be_ahead_of(counters: Progress) -> None:
    counters.offered[0] = 10**9
    assert Lead(counters, 100, deliveries_per_message=0).room() == 100


def test_what_never_arrives_is_written_off_and_no_more_than_that(
    counters: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that drops the last messages of a burst must not stop the publisher for good."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lead = Lead(counters, 100, 1)
    counters.offered[0] = 100
    assert lead.room() == 0
    now[0] = progress.STALL_S * 0.9
    assert lead.room() == 0
    now[0] = progress.STALL_S * 1.1
    assert lead.room() == 100
    # They arrive after all: the lead is what it was.
    counters.position[0] = 100
    assert lead.room() == 100
