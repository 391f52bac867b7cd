"""The filters of all sessions together, and of each holder, have bounds. docs/guides/security.md, "Quotas"."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rumq.session.flow_control.limits import Limits
from rumq.session.state.filter_totals import FilterTotals
from rumq.session.state.subscribed_filters import SubscribedFilters, filter_bytes

LIMITS = Limits(all_wildcard_levels_max=100, all_subscriptions_bytes_max=1 << 40)


def test_a_holder_alone_gets_half_and_others_find_room() -> None:
    totals = FilterTotals()
    for _ in range(50):
        assert totals.refusal("user ann", 0, 1, LIMITS) == ""
        totals.add("user ann", 0, 1)
    assert totals.refusal("user ann", 0, 1, LIMITS) == (
        "the filters of user ann have 50 of 100 levels from a wildcard on, and what is free is for others"
    )
    assert totals.refusal("user ann", 10, 0, LIMITS) == "", "without a wildcard it costs no match"
    assert totals.refusal("user bob", 0, 25, LIMITS) == ""
    totals.add("user bob", 0, 25)
    assert totals.refusal("user bob", 0, 1, LIMITS)
    assert totals.refusal("user eve", 0, 26, LIMITS) == (
        "the filters of all sessions may have 100 levels from a wildcard on and have 75"
    )


def test_bytes_have_a_bound_likewise() -> None:
    totals, limits = FilterTotals(), msgspec.structs.replace(LIMITS, all_subscriptions_bytes_max=10_000)
    totals.add("user ann", 5_000, 0)
    assert totals.refusal("user ann", 1, 0, limits) == (
        "the filters of user ann have 5000 of 10000 bytes, and what is free is for others"
    )
    assert totals.refusal("user bob", 2_500, 0, limits) == ""


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "+/a", "#", "move x", "move y", "move", "-a", "-#"])),
        max_size=30,
    )
)
def test_the_totals_are_those_of_the_filters_that_are_there(changes: list[tuple[int, str]]) -> None:
    totals, sessions = FilterTotals(), [SubscribedFilters() for _ in range(3)]
    holders: dict[int, str | None] = dict.fromkeys(range(3))
    for number, change in changes:
        if change.startswith("move"):
            holders[number] = change.removeprefix("move").strip() or None
            holder = holders[number]
            sessions[number].count_for(holder or "", totals if holder else None)
        elif change.startswith("-"):
            sessions[number].discard(change[1:])
        else:
            sessions[number].add(change)
    counted = [each for number, each in enumerate(sessions) if holders[number]]
    assert totals.bytes == sum(filter_bytes(f) for each in counted for f in each)
    assert totals.wildcard_levels == sum(each.wildcard_levels for each in counted)
    for each in sessions:
        each.count_for("", None)
    assert totals.bytes == totals.wildcard_levels == 0 and not totals._of_holder
