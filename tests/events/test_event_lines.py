"""An event as a line: its time as text, what is long cut, all of it UTF-8."""

import json

import pytest

from rumq.events.event_lines import CLIENT_TEXT_MAX, TEXT_MAX, Stamp, cut, shorten, stamped

SECOND = 1_795_901_013_000_000  # 2026-11-28 21:23:33 UTC, in µs


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (SECOND, "21:23:33.000Z"),
        (SECOND + 999_999, "21:23:33.999Z"),
        (SECOND + 1_000_000, "21:23:34.000Z"),
        (SECOND - 1, "21:23:32.999Z"),  # the clock was set back
    ],
)
def test_the_text_of_a_second_is_made_again_when_another_one_begins(time_us: int, text: str) -> None:
    stamp = Stamp()
    assert stamp.text(SECOND).endswith("T21:23:33.000Z")
    assert stamp.text(time_us).endswith("T" + text)


def test_time_level_name_and_floor_come_first() -> None:
    event = stamped(SECOND, "info", "client.lost", "net", {"why": "gone"})
    assert list(event) == ["time", "level", "event", "floor", "why"]


def test_an_exception_is_its_text() -> None:
    try:
        raise ValueError("this one")
    except ValueError as fault:
        events = [stamped(SECOND, "error", "x", "net", {"exc_info": given}) for given in (fault, True)]
    for event in events:
        assert "exc_info" not in event and event["exception"].endswith("ValueError: this one")
    assert "exception" not in stamped(SECOND, "error", "x", "net", {"exc_info": None})


@pytest.mark.parametrize(("about", "longest"), [("client_id", CLIENT_TEXT_MAX), ("stream", TEXT_MAX)])
def test_what_is_long_is_cut_and_what_a_client_chose_sooner(about: str, longest: int) -> None:
    event = {about: "x" * (longest + 1), "several": ["y" * (longest + 1), 3], "short": "z" * longest}
    shorten(event)
    assert event[about] == "x" * longest + f"... ({longest + 1} characters)"
    assert event["several"] == ["y" * longest + f"... ({longest + 1} characters)", 3]
    assert event["short"] == "z" * longest


def test_what_is_no_utf_8_can_be_written_all_the_same() -> None:
    assert json.dumps(cut("a\udc80b", 100)).isascii()
    assert cut("a\udc80b", 100).encode() == b"a\\udc80b"
