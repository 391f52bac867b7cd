"""Calls that are bound once both of their parts are there."""

import pytest

from rumq.shards.assembly.late_calls import LateCall, LateCalls


def test_a_call_is_made_once_it_is_bound_and_bound_once() -> None:
    call: LateCall[[int], int] = LateCall()
    with pytest.raises(AssertionError, match="before the shard was built"):
        call(1)
    call.bind(lambda number: number + 1)
    assert call(1) == 2
    with pytest.raises(AssertionError):
        call.bind(lambda number: number)


def test_one_that_nobody_has_bound_is_named() -> None:
    late = LateCalls()
    late.tally.bind(lambda tally: None)
    assert late.unbound() == ["limits", "standing", "say_all", "leave_behind"]
