"""Where a replay begins, as a subscriber types it. docs/reference/replay.md."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rumq.session.protocol.replay_syntax import (
    ALLOWED,
    PREFIX,
    SHOWN_MAX,
    UNITS,
    BadStart,
    Start,
    parse_start,
    shown,
    split_replay,
)

repeatable = settings(derandomize=True, deadline=None)

NOW_US = 1_760_000_000_000_000
KINDS = ("time", "retained", "offset")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("0", ("offset", 0)),
        ("0017", ("offset", 17)),
        ("-30s", ("time", NOW_US - 30 * 10**6)),
        ("-15m", ("time", NOW_US - 15 * 60 * 10**6)),
        ("-1h", ("time", NOW_US - 3600 * 10**6)),
        ("-7d", ("time", NOW_US - 7 * 86_400 * 10**6)),
        ("-2w", ("time", NOW_US - 14 * 86_400 * 10**6)),
        ("1970-01-01", ("time", 0)),
        ("2026-11-20T06:00:00Z", ("time", 1_795_154_400_000_000)),
        ("2026-11-20T06:00:00", ("time", 1_795_154_400_000_000)),  # without a zone: UTC
        ("2026-11-20T08:00:00+02:00", ("time", 1_795_154_400_000_000)),
        ("2026-11-20T06:00:00.000001Z", ("time", 1_795_154_400_000_001)),
        ("retained@-1d", ("retained", NOW_US - 86_400 * 10**6)),
        ("retained@2026-11-20T06:00:00Z", ("retained", 1_795_154_400_000_000)),
    ],
)
def test_a_place(text: str, place: Start) -> None:
    assert parse_start(text, "a", NOW_US) == place


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ""),
        ("yesterday", ""),
        ("Earliest", ""),
        ("-1", ""),
        ("-h", ""),
        ("--1h", ""),
        ("-1y", ""),
        ("+1h", ""),
        ("-²h", ""),  # a digit to `str.isdigit`, no number
        ("٣", ""),
        ("1" * 20, "the offset is too large"),
        ("1969-12-31T23:59:59Z", "before 1970"),
        ("1970-01-01T00:00:00+01:00", "before 1970"),
        ("retained@", ""),
        ("retained@retained@-1h", ""),
        ("retained@earliest", "as of a time"),
        ("retained@7", "as of a time"),
    ],
)
def test_no_place(text: str, why: str) -> None:
    with pytest.raises(BadStart) as refused:
        parse_start(text, "a", NOW_US)
    said = str(refused.value)
    assert why in said and said.endswith(f"allowed: {ALLOWED}")


@pytest.mark.parametrize(("topic_filter", "counts"), [("a/b", True), ("a/+", False), ("a/#", False), ("#", False)])
def test_an_offset_counts_the_messages_of_one_topic(topic_filter: str, counts: bool) -> None:
    if counts:
        assert parse_start("7", topic_filter, NOW_US) == ("offset", 7)
    else:
        with pytest.raises(BadStart, match="wildcard"):
            parse_start("7", topic_filter, NOW_US)
    assert parse_start("-1h", topic_filter, NOW_US)[0] == "time"  # a time is one for all topics


@repeatable
@given(st.integers(0, 100_000), st.sampled_from(sorted(UNITS)))
def test_so_long_ago_is_that_much_before_now_and_not_before_1970(count: int, unit: str) -> None:
    ago = timedelta(seconds=count * UNITS[unit]) // timedelta(microseconds=1)
    assert parse_start(f"-{count}{unit}", "a", NOW_US) == ("time", max(0, NOW_US - ago))


@repeatable
@given(st.integers(20, 70_000), st.sampled_from(sorted(UNITS)))
@example(65_000, "s")  # the longest that a filter has room for; `int` refuses it
def test_longer_ago_than_there_is_time_is_1970(digits: int, unit: str) -> None:
    assert parse_start(f"-{'9' * digits}{unit}", "a", NOW_US) == ("time", 0)


@repeatable
@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_a_time_is_the_same_in_every_zone(moment: datetime, zone: timezone) -> None:
    expected = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    written = moment.replace(tzinfo=UTC).astimezone(zone).isoformat()
    assert parse_start(written, "#", NOW_US) == ("time", expected)


@repeatable
@given(
    st.text()
    | st.from_regex(r"(retained@)*(-?[0-9]{1,25}[smhdwy]?|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]{2,15}[-+Z0-9:]{0,6})?)")
)
@example("0001-01-01T00:00:00+23:59")
@example("9999-12-31T23:59:59-23:59")
def test_any_text_is_a_place_or_refused_in_a_short_sentence(text: str) -> None:
    """A client types it: nothing else may be raised, and the sentence must fit into a packet."""
    try:
        place = parse_start(text, "a", NOW_US)
    except BadStart as refused:
        said = str(refused)
    else:
        said = ""
        assert place in ("earliest", "latest") or (place[0] in KINDS and int(place[1]) >= 0)
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("topic_filter", "parts"),
    [
        ("$log/earliest/plant/#", ("earliest", "plant/#")),
        ("$log/-1h/a", ("-1h", "a")),
        ("$log/-1h//a", ("-1h", "/a")),  # an empty first level is one
        ("$log/retained@-1d/#", ("retained@-1d", "#")),
        ("$log//a", ("", "a")),  # `parse_start` refuses the place
        ("a/$log/earliest/b", None),
        ("$logs/earliest/b", None),
        ("$log", None),
        ("$SYS/#", None),
    ],
)
def test_the_place_stands_before_the_filter(topic_filter: str, parts: tuple[str, str] | None) -> None:
    assert split_replay(topic_filter) == parts


@pytest.mark.parametrize("topic_filter", ["$log/", "$log/earliest", "$log/earliest/"])
def test_a_place_without_a_filter_is_refused(topic_filter: str) -> None:
    with pytest.raises(BadStart, match="no filter behind the place"):
        split_replay(topic_filter)


@repeatable
@given(st.text(alphabet=st.characters(exclude_characters="/")), st.text(min_size=1))
def test_what_was_split_was_all_of_it(start: str, rest: str) -> None:
    assert split_replay(f"{PREFIX}{start}/{rest}") == (start, rest)


@repeatable
@given(st.text(max_size=70_000))
@example("\n" * 70_000)
@example("'")
def test_what_a_client_typed_is_shown_on_one_short_line(text: str) -> None:
    line = shown(text)
    assert "\n" not in line and len(line) <= 10 * SHOWN_MAX + 5
    assert line.endswith("...") == (len(text) > SHOWN_MAX)
