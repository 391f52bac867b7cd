"""Filters of this shard's readers: counted by group, and what came or went is told once."""

import pytest

from router.matching.local_filters import LocalFilters


def test_a_filter_comes_with_its_first_group_and_goes_with_its_last() -> None:
    local = LocalFilters(records_changes=True)
    local.add("a/#")
    local.add("a/#")
    assert local.take_changes() == (["a/#"], [])
    local.discard("a/#")
    assert (local.counts, local.take_changes()) == ({"a/#": 1}, ([], []))
    local.discard("a/#")
    assert (local.counts, local.take_changes()) == ({}, ([], ["a/#"]))


def test_what_came_and_went_in_between_counts_as_it_is_now() -> None:
    local = LocalFilters(records_changes=True)
    local.add("a")
    local.discard("a")
    assert local.take_changes() == ([], ["a"])


def test_nothing_is_recorded_where_nobody_takes_it() -> None:
    local = LocalFilters(records_changes=False)
    local.add("a")
    assert (local.counts, local.changed) == ({"a": 1}, {})


def test_what_nobody_has_cannot_go() -> None:
    with pytest.raises(KeyError):
        LocalFilters(records_changes=True).discard("a")
