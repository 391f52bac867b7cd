"""The rules keep what is committed, in every order of events of the model, whatever goes back; none can be dropped."""

from pathlib import Path

import pytest

from tests.cluster.model.checker import DROPPED, SEARCHES, TRACES, Dropped, Search, check, missing_tool

pytestmark = pytest.mark.skipif(bool(missing_tool()), reason=f"{missing_tool()} is not installed")
STATES_MIN = 400_000


@pytest.mark.parametrize(
    "search", [each for each in SEARCHES if not each.is_long], ids=lambda each: " ".join(each.flags)
)
def test_nothing_that_is_committed_is_lost_or_changed(tmp_path: Path, search: Search) -> None:
    found = check(tmp_path, search.flags)
    assert not found.is_broken, found.trace
    assert found.states > STATES_MIN, "the search ended early"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("search", [each for each in SEARCHES if each.is_long], ids=lambda each: " ".join(each.flags))
def test_nor_in_longer_histories(tmp_path: Path, search: Search) -> None:
    found = check(tmp_path, search.flags)
    assert not found.is_broken, found.trace


@pytest.mark.parametrize("dropped", DROPPED, ids=lambda each: each.flag)
def test_without_a_rule_something_is_lost(tmp_path: Path, dropped: Dropped) -> None:
    found = check(tmp_path, (dropped.flag, *dropped.others))
    assert found.is_broken
    assert (TRACES / f"{dropped.flag}.txt").stat().st_size > 200, "python -m tests.cluster.model writes it"
