"""A job does not read what it publishes."""

import pytest

from rumq.spark.job_kit.feedback_loop import as_filter, check_loop
from rumq.table.errors import BadOption


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
