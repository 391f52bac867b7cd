"""Which topics functions read and write: a loop is found, and nothing else is taken for one."""

import itertools

import pytest
from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from rumq.functions.rules import FunctionRules, maybe_loop, overlaps
from rumq.mqtt.topics import matches

LEVELS = lists(sampled_from(["a", "b", "+"]), min_size=1, max_size=3)
FILTERS = LEVELS.flatmap(lambda levels: sampled_from(["/".join(levels), "/".join([*levels, "#"])]))
TOPICS = ["/".join(levels) for size in range(1, 5) for levels in itertools.product("abc", repeat=size)]


@given(FILTERS, FILTERS)
def test_filters_overlap_if_a_topic_is_of_both(one: str, other: str) -> None:
    both = any(matches(one, topic) and matches(other, topic) for topic in TOPICS)
    assert overlaps(one, other) is both
    assert overlaps(other, one) is both


def rules(name: str, topic_filter: str, prefix: str) -> FunctionRules:
    return FunctionRules(name, (topic_filter,), "f.py", prefix)


@pytest.mark.parametrize(
    ("functions", "loop"),
    [
        ([rules("a", "plant/#", "mean/")], None),
        ([rules("a", "plant/#", "plant/mean/")], ["a"]),
        ([rules("a", "#", "mean/")], ["a"]),
        ([rules("a", "+/x", "mean/")], ["a"]),
        ([rules("a", "plant/x", "plant/y/")], None),
        ([rules("a", "plant/#", "b/"), rules("b", "b/#", "c/"), rules("c", "c/#", "d/")], None),
        ([rules("a", "plant/#", "b/"), rules("b", "b/#", "c/"), rules("c", "c/#", "plant/d/")], ["a", "b", "c"]),
        ([rules("x", "plant/#", "b/"), rules("b", "b/#", "c/"), rules("c", "c/#", "b/d/")], ["b", "c"]),
        ([rules("a", "p/#", "b/"), rules("b", "p/#", "c/"), rules("c", "c/#", "d/"), rules("d", "b/#", "d/")], None),
    ],
)
def test_a_loop_is_named_in_its_order(functions: list[FunctionRules], loop: list[str] | None) -> None:
    assert maybe_loop(functions) == loop
