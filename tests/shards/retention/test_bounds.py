"""What retention keeps: the first record that the journal, a session of any shard or the export still needs."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.disk.export_marker import write_exported
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.export_positions import ExportPositions
from tests.commitlog.records import DIRECTORY, opened
from tests.shards.world import ByHand

EXPORTED = 70


class World:
    """A journal that needs records from 10 on, and other shards whose sessions need them from 20 on."""

    def __init__(self, *, export_bytes_max: int | None = None) -> None:
        """export_bytes_max: None: nothing is exported"""
        files = SimulatedFiles()
        self.partition = opened(files).own[0]
        write_exported(files, DIRECTORY, EXPORTED)
        self.sessions_here: int | None = None
        self.told: list[Any] = []
        self.pool = ByHand()
        journal: Any = SimpleNamespace(
            keep_lsn=lambda index: 10 + index, wanted_lsn=lambda index: self.sessions_here, take_removal=lambda: "it"
        )
        needs: Any = SimpleNamespace(
            wanted_lsn=lambda index, here: min(20 + index, 99 if here is None else here),
            tell_needs=lambda wanted_lsn: self.told.append(wanted_lsn(0)),
        )
        exports = None if export_bytes_max is None else ExportPositions(files, ["main"], export_bytes_max)
        self.bounds = RetentionBounds(journal, needs, exports, self.pool)


def test_retained_messages_are_found_in_the_log_from_where_the_journal_says() -> None:
    assert [World().bounds.retained(index) for index in (0, 1)] == [10, 11]


@pytest.mark.parametrize(("here", "wanted"), [(None, 20), (5, 5), (30, 20)])
def test_a_session_in_any_shard_keeps_what_it_has_not_had(here: int | None, wanted: int) -> None:
    world = World()
    world.sessions_here = here
    assert world.bounds.sessions(0) == wanted


def test_other_shards_hear_what_sessions_here_need() -> None:
    world = World()
    world.sessions_here = 5
    world.bounds.tell_needs()
    assert world.told == [5]


def test_without_an_export_nothing_waits_for_it() -> None:
    bounds, partition = World().bounds, World().partition
    assert bounds.exporter(partition) is None and bounds.exporter_within(partition) == (None, 0)


@pytest.mark.parametrize(("bytes_max", "within"), [(1000, (EXPORTED, 1000)), (0, (None, 0))])
def test_an_export_keeps_what_it_has_not_had_and_retention_waits_for_so_many_bytes_of_it(
    bytes_max: int, within: tuple[int | None, int]
) -> None:
    world = World(export_bytes_max=bytes_max)
    assert world.bounds.exporter(world.partition) == 0, "unknown until its marker is read: nothing may go"
    world.pool.work()
    assert world.bounds.exporter(world.partition) == EXPORTED
    assert world.bounds.exporter_within(world.partition) == within


def test_the_journal_says_what_may_go_of_itself() -> None:
    assert World().bounds.journal_removal() == "it"  # type: ignore[comparison-overlap]
