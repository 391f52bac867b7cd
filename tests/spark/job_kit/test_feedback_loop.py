"""A job does not read what it publishes."""

from itertools import product

import pytest

from rumq.mqtt.topics import matches
from rumq.spark.job_kit.feedback_loop import as_filter, check_loop, overlap
from rumq.table.errors import BadOption

LEVELS = ["a", "b", ""]
TOPICS = ["/".join(levels) for n in (1, 2, 3, 4) for levels in product(LEVELS, repeat=n)]
FILTERS = ["/".join(levels) for n in (1, 2, 3) for levels in product(["a", "b", "+"], repeat=n)]
FILTERS += [f"{one}/#" for one in FILTERS if one.count("/") < 2] + ["#"]


def test_filters_overlap_where_a_topic_is_of_both() -> None:
    topics = [topic for topic in TOPICS if topic]
    found = {one: {topic for topic in topics if matches(one, topic)} for one in FILTERS}
    for one, other in product(FILTERS, repeat=2):
        assert overlap(one, other) == bool(found[one] & found[other]), (one, other)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("weather/{city}/daily", "weather/+/daily"),
        ("jobs/{topic}", "jobs/#"),
        ("{topic}/x", "#"),
        ("a/x{b}", "a/+"),
    ],
)
def test_a_template_is_a_filter(template: str, expected: str) -> None:
    assert as_filter(template) == expected


def test_a_loop_is_refused() -> None:
    check_loop("weather/{city}/daily", "weather/+/temperature", "")
    check_loop("weather/{city}/daily", "weather/#", "weather/{city}/temperature")
    for subscribe, pattern in (("", ""), ("a/b, weather/#", ""), ("weather/#", "weather/{city}/{what}")):
        with pytest.raises(BadOption, match="would read what it publishes"):
            check_loop("weather/{city}/daily", subscribe, pattern)
