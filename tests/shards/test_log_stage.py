"""What the log needs at a turn's end comes in order, and nothing of it is asked before it is due."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.log_stage import LogStage
from rumq.shards.write_path.free_space import MEASURE_SECONDS
from tests.commitlog.records import append
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class Copying:
    """A stage over a shard's parts. copied: bytes that had been handed to the writers each time it was told to copy"""

    def __init__(self, shard: Shard) -> None:
        writing = shard.parts.writing
        self.commit, self.copied = writing.commit, list[int]()
        self.stage = LogStage(
            shard.parts.clock, shard.parts.operation.restorer.journal, writing.commit, writing.probe,
            shard.parts.operation.disk, writing.backpressure, writing.retained_quota, self.copy,
        )  # fmt: skip

    def copy(self) -> None:
        self.copied.append(self.commit.submitted_bytes)


def test_followers_are_sent_what_groups_of_this_turn_have(shard: Shard) -> None:
    copying = Copying(shard)
    before = copying.commit.submitted_bytes
    append(shard.store.own[1], [(b"t", b"x")])
    copying.commit.urgent(shard.store.own[1].index)
    copying.stage.end_turn()
    copying.stage.end_second_step()
    assert copying.copied[0] > before and len(copying.copied) == 2
    shard.settle()


@pytest.mark.parametrize("is_second", [False, True])
def test_entries_of_the_journal_are_in_a_group_of_the_same_turn(shard: Shard, is_second: bool) -> None:
    copying = Copying(shard)
    client = Client(shard, "c", 5, clean=False, properties=[(Prop.SESSION_EXPIRY, 3600)])
    journal = shard.store.internal
    assert journal is not None and not journal.pending_bytes
    packet = wire.subscribe(1, [("t", 1)])
    assert client.link.receive(packet, 0, len(packet)) == len(packet)
    before = journal.next_lsn
    assert copying.commit.urgent(journal.index) is None
    if is_second:
        copying.stage.end_second_step()
    else:
        copying.stage.end_turn()
    assert journal.next_lsn > before and journal.pending_bytes, "appended"
    assert not copying.commit.is_settled(), "and handed to the writer"
    shard.settle()


def test_free_space_is_measured_when_that_is_due_and_then_looked_at(shard: Shard) -> None:
    copying, disk = Copying(shard), shard.parts.operation.disk
    for seconds, is_looked_at in ((0.0, False), (MEASURE_SECONDS, True)):
        disk.space = None
        shard.monotonic += seconds
        shard.parts.turn.begin_turn()
        copying.stage.end_turn()
        shard.settle()
        copying.stage.end_turn()
        assert (disk.space is not None) == is_looked_at and shard.parts.writing.probe.latest is None
