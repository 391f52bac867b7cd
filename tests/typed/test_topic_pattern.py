"""A pattern is a filter, makes topic names and reads them; each name is one whole level."""

import pytest
from hypothesis import given
from hypothesis.strategies import text

from rumq.mqtt.topics import matches
from rumq.typed.topic_pattern import TopicPattern

LEVEL = text(min_size=1, max_size=8).filter(lambda each: not set(each) & set("/+#\0") and each.isprintable())


@pytest.mark.parametrize(
    ("pattern", "topic_filter", "names"),
    [
        ("plant/{pump}/temperature", "plant/+/temperature", ("pump",)),
        ("{site}/{pump}", "+/+", ("site", "pump")),
        ("alarm", "alarm", ()),
        ("/a//{x}", "/a//+", ("x",)),
    ],
)
def test_it_is_a_filter(pattern: str, topic_filter: str, names: tuple[str, ...]) -> None:
    found = TopicPattern(pattern)
    assert (found.filter, found.names) == (topic_filter, names)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "topic"),
        ("plant/#", "'#'"),
        ("plant/+/t", r"'\+'"),
        ("plant/{pump", "{pump"),
        ("plant/p{pump}", "whole|expected"),
        ("plant/{}", "expected"),
        ("plant/{2}", "expected"),
        ("{a}/{a}", "twice"),
        ("plant/{qos}", "argument of publish"),
        ("a\0b", "topic"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TopicPattern(pattern)


@given(LEVEL, LEVEL)
def test_names_come_back(site: str, pump: str) -> None:
    pattern = TopicPattern("plant/{site}/x/{pump}")
    topic = pattern.topic({"site": site, "pump": pump})
    assert pattern.maybe_names(topic) == {"site": site, "pump": pump}
    assert matches(pattern.filter, topic)


@pytest.mark.parametrize("names", [{}, {"pumps": 7}, {"pump": ""}, {"pump": "a/b"}, {"pump": "#"}, {"pump": "+"}])
def test_what_is_no_level_is_refused(names: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="pump"):
        TopicPattern("plant/{pump}").topic(names)


@pytest.mark.parametrize("topic", ["plant", "plant/7/8", "other/7", "Plant/7", "$SYS/7"])
def test_other_topics_are_not_of_it(topic: str) -> None:
    assert TopicPattern("plant/{pump}").maybe_names(topic) is None
    assert TopicPattern("{a}/{b}").maybe_names("$SYS/7") is None, "as a filter that begins with a wildcard"
