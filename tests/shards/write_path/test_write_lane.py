"""When a lane wants a turn: for what is pending, else for the mark behind it, and not before a retry."""

from math import inf

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.write_path.write_lane import WriteLane
from tests.commitlog.records import append, opened


def lane() -> WriteLane:
    return WriteLane(opened(SimulatedFiles()).own[0])


def test_nothing_is_due_of_a_lane_without_records() -> None:
    assert lane().next_deadline() == inf


def test_what_is_pending_is_due_before_the_mark_of_what_was_written() -> None:
    waiting = lane()
    waiting.mark_due_at = 7.0
    assert waiting.next_deadline() == 7.0
    waiting.due_at = 9.0
    assert waiting.next_deadline() == 9.0, "the group has the mark of the one before it in its header"


def test_a_partition_that_could_not_be_written_is_due_again_with_its_retry() -> None:
    waiting = lane()
    waiting.due_at, waiting.retry_at = 1.0, 5.0
    assert waiting.next_deadline() == 5.0


def test_a_lane_whose_group_a_thread_has_waits_for_the_thread() -> None:
    waiting = lane()
    append(waiting.partition, [(b"t", b"x")])
    waiting.due_at = 1.0
    waiting.group = waiting.partition.take_group()
    assert waiting.next_deadline() == inf
