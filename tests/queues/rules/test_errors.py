"""The family of errors, which doors map by kind."""

from __future__ import annotations

import pickle

import pytest

from rumq.queues.rules import errors as e

FAMILY = [e.NoSuchQueue, e.QueueExists, e.BadQueueRequest, e.QueueNotAllowed, e.QueueFull, e.QueuesUnavailable]


def test_each_has_a_kind_of_its_own() -> None:
    assert [each.kind for each in FAMILY] == ["not_found", "exists", "invalid", "not_allowed", "full", "unavailable"]


@pytest.mark.parametrize("fault", [*(kind("why") for kind in FAMILY), e.QueueFull("why", 5, 7)])
def test_pickle_rebuilds_it(fault: e.QueueError) -> None:
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is type(fault) and str(again) == "why" and vars(again) == vars(fault)


def test_names_are_shown_in_short() -> None:
    assert e.shown("news") == "'news'" and len(e.shown("x" * 65_536)) < 130
