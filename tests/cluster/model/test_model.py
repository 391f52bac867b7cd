"""The rules R1 to R7 keep what is committed, in every order of events of the model; none can be dropped."""

from pathlib import Path

import pytest

from tests.cluster.model.checker import DROPPED, TRACES, Dropped, check, missing_tool

pytestmark = pytest.mark.skipif(bool(missing_tool()), reason=f"{missing_tool()} is not installed")
STATES_MIN = 500_000


def test_nothing_that_is_committed_is_lost_or_changed(tmp_path: Path) -> None:
    found = check(tmp_path, ())
    assert not found.is_broken, found.trace
    assert found.states > STATES_MIN, "the search ended early"


def test_nor_while_members_change(tmp_path: Path) -> None:
    found = check(tmp_path, ("CHANGE", "CRASHES=1"))
    assert not found.is_broken, found.trace
    assert found.states > STATES_MIN


@pytest.mark.parametrize("dropped", DROPPED, ids=lambda dropped: dropped.flag)
def test_without_a_rule_something_is_lost(tmp_path: Path, dropped: Dropped) -> None:
    found = check(tmp_path, (dropped.flag, *dropped.others, "CRASHES=1"))
    assert found.is_broken
    assert (TRACES / f"{dropped.flag}.txt").stat().st_size > 200, "python -m tests.cluster.model writes it"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flags", [("TERMS=4",), ("CHANGE", "CRASHES=2")], ids=" ".join)
def test_nor_in_longer_histories(tmp_path: Path, flags: tuple[str, ...]) -> None:
    found = check(tmp_path, flags)
    assert not found.is_broken, found.trace
