"""Each event of the loop's thread has the level of the table.

docs/reference/events.md has the same: tests/test_events.py."""

import io
import json
from collections.abc import Iterator

import pytest

from rumq.events.event_log import LEVELS, tell
from rumq.events.output import setup_events


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    setup_events("json", "debug", stream)
    yield stream
    setup_events()


def written(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_has_its_name_its_floor_its_level_and_its_fields(log: io.StringIO) -> None:
    tell("log.full", free_bytes=7, why=None)
    (event,) = written(log)
    assert event.pop("time")
    assert event == {
        "event": "log.full", "floor": "rumq.log", "level": "error", "free_bytes": 7, "why": None,
    }  # fmt: skip


def test_an_event_that_is_not_in_the_table_is_information(log: io.StringIO) -> None:
    tell("session.resumed")
    assert "session.resumed" not in LEVELS and [event["level"] for event in written(log)] == ["info"]


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_each_event_is_written_at_its_level(log: io.StringIO, level: str) -> None:
    names = [name for name, of in LEVELS.items() if of == level]
    for name in names:
        tell(name)
    assert names and [(event["event"], event["level"]) for event in written(log)] == [(name, level) for name in names]


def test_an_operator_who_asks_for_errors_hears_no_warning() -> None:
    stream = io.StringIO()
    setup_events("json", "error", stream)
    tell("publish.slowed")
    tell("log.offline")
    setup_events()
    assert [event["event"] for event in written(stream)] == ["log.offline"]


def test_events_follow_a_stream_that_changes(log: io.StringIO) -> None:
    """A logger that was kept from before would still write to the old one."""
    tell("log.full")
    other = io.StringIO()
    setup_events("json", "debug", other)
    tell("log.full")
    assert len(written(log)) == len(written(other)) == 1


def test_the_exception_that_is_being_handled_comes_with_the_event(log: io.StringIO) -> None:
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        tell("task.failed", task="t", exc_info=True)
    (event,) = written(log)
    assert "ZeroDivisionError: by nothing" in str(event)
