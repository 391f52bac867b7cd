"""The cost of a session's filters, and its limits. MQTT 5.0, 3.8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.session.flow_control.limits import Limits
from rumq.session.state.subscribed_filters import SubscribedFilters, filter_bytes, wildcard_levels

FILTERS = st.lists(st.sampled_from(["a", "a/b/c", "+", "a/+/c", "#", "a/b/#", "x" * 100]), max_size=20)


@pytest.mark.parametrize(
    ("topic_filter", "levels"),
    [("a/b/c", 0), ("a/+/c", 2), ("#", 1), ("a/b/#", 1), ("+/+/+", 3), ("a/+/c/#", 3)],
)
def test_levels_count_from_the_first_wildcard_on(topic_filter: str, levels: int) -> None:
    assert wildcard_levels(topic_filter) == levels


@given(FILTERS, FILTERS)
def test_the_sums_are_those_of_the_filters_that_are_there(added: list[str], removed: list[str]) -> None:
    filters = SubscribedFilters(added)
    for each in removed:
        filters.discard(each)
    assert set(filters) == set(added) - set(removed)
    assert filters.bytes == sum(map(filter_bytes, filters))
    assert filters.wildcard_levels == sum(map(wildcard_levels, filters))


def test_a_filter_may_become_a_replay_and_costs_the_same() -> None:
    filters = SubscribedFilters(["a"])
    before = filters.bytes
    filters.add("a", is_replay=True)
    assert filters.items() == [("a", True)] and filters.bytes == before


def test_each_limit_refuses_one_more_and_none_that_is_there() -> None:
    filters = SubscribedFilters(["a/+"])
    full = [
        Limits(subscriptions_max=1),
        Limits(subscriptions_bytes_max=filters.bytes),
        Limits(wildcard_levels_max=1),
    ]
    for limits in full:
        assert filters.refusal("b/#", limits)
        assert not filters.refusal("a/+", limits)
    assert not filters.refusal("b/#", Limits())
