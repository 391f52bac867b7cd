"""The last stage of a turn: entries reach the journal before the groups are cut that acknowledgements wait for."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.shards.turn.scheduler import Lifecycle
from rumq.shards.write_path.write_stage import WriteStage
from tests.shards.bus.world import Hand

NOW = (1_700_000_000_000_000, 1000.0)


class World:
    """The parts of the write path as far as the stage knows them. calls: in order"""

    def __init__(self) -> None:
        self.hand, self.lifecycle = Hand(), Lifecycle()
        self.hand.now_us = NOW[0]
        self.lifecycle.is_restored = True
        self.calls: list[tuple[Any, ...]] = []
        self.due: float | None = None

        def part(name: str, *calls: str) -> Any:
            note = self.calls.append
            return SimpleNamespace(
                **{call: lambda *args, call=call: note((f"{name}.{call}", *args)) for call in calls}
            )

        commit = part("commit", "start")
        commit.submitted_bytes, commit.next_deadline = 77, lambda monotonic: self.due
        self.stage = WriteStage(
            self.hand, self.lifecycle, part("journal", "flush", "look"), commit, part("probe", "look"),
            part("backpressure", "look"), part("quota", "look"),
        )  # fmt: skip

    def turn(self) -> list[str]:
        self.calls.clear()
        self.stage.end_turn()
        return [name for name, *_ in self.calls]


WRITES = ["probe.look", "commit.start", "backpressure.look", "quota.look"]


def test_the_journal_comes_before_the_groups_and_backpressure_after_them() -> None:
    world = World()
    assert world.turn() == ["journal.flush", "journal.look", *WRITES]
    assert world.calls[:3] == [("journal.flush", NOW[0]), ("journal.look", *NOW), ("probe.look", 77)]
    assert world.calls[3] == ("commit.start", *NOW, False)


def test_nothing_is_journalled_before_the_sessions_of_the_run_before_are_here() -> None:
    """A snapshot of half of them would be the last word about the others."""
    world = World()
    world.lifecycle.is_restored = False
    assert world.turn() == WRITES


def test_a_broker_that_stops_lets_nothing_linger() -> None:
    world = World()
    world.lifecycle.is_draining = True
    world.turn()
    assert ("commit.start", *NOW, True) in world.calls


@pytest.mark.parametrize(("due", "deadline"), [(None, inf), (1000.005, 1000.005)])
def test_it_wants_a_turn_when_a_group_is_due(due: float | None, deadline: float) -> None:
    world = World()
    world.due = due
    assert world.stage.next_deadline() == deadline
