"""Records that another shard publishes here are acknowledged by its own count, once they are committed."""

from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import Chunk
from router.commands import Appended
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.messages import Numbered, PublishedRecords
from rumq.shards.bus.publish_receiver import PublishReceiver
from tests.shards.bus.world import Hand


class World:
    def __init__(self) -> None:
        self.hand, self.totals = Hand(), ShardTotals()
        self.released: list[int] = []
        self.partition: Any = SimpleNamespace(
            index=0,
            next_lsn=10,
            committed_lsn=10,
            add_publisher=lambda client_id: 4,
            append=self._append,
            release_publisher=self.released.append,
        )
        self.urgent: list[int] = []
        no_tracer: Any = None
        topics: Any = SimpleNamespace(number=lambda partition, name: 6)
        self.receiver = PublishReceiver(
            [self.partition], topics, self.hand, self.totals, self.urgent.append, self.hand, no_tracer
        )
        self.receiver.joined(77)
        self.said: list[Any] = []

    def _append(self, rows: bytearray, *rest: Any) -> Any:
        return Chunk(10, 1, 0, 0, rows, b"f")

    def publish(self, sequence: int, flags: int = 0) -> Appended:
        link: Any = SimpleNamespace(say=self.said.append)
        message = PublishedRecords(0, sequence, 1, flags, [(0, b"t")], [(1, b"pump")], 32, 1)
        row = bytearray(32)
        row[24] = 1
        self.receiver.published(link, message, memoryview(bytearray(bytes(row) + b"f")))
        command = self.hand.items[-1]
        assert isinstance(command, Appended)
        return command


@pytest.fixture
def world() -> World:
    return World()


def test_numbers_of_the_publishing_shard_become_ours_and_it_is_told_them(world: World) -> None:
    command = world.publish(2)
    assert (command.chunk.rows[0], command.chunk.rows[24]) == (6, 4) and world.said == [Numbered(0, [(1, 4)])]
    assert world.totals.taken_over == 1 and not world.urgent


def test_a_batch_with_qos_1_is_urgent(world: World) -> None:
    world.publish(2, flags=1)
    assert world.urgent == [0]


def test_a_sequence_is_committed_once_all_before_it_is(world: World) -> None:
    incoming = world.receiver.incoming[0]
    world.publish(2)
    world.partition.next_lsn = 11
    incoming.step_done()
    assert incoming.committed_sequence() == 0
    world.partition.committed_lsn = 11
    assert incoming.committed_sequence() == 2


def test_numbers_that_were_never_introduced_end_the_link(world: World) -> None:
    link: Any = SimpleNamespace(say=world.said.append)
    with pytest.raises(ValueError, match="never introduced"):
        world.receiver.published(link, PublishedRecords(0, 2, 1, 0, [], [], 32, 1), memoryview(bytearray(33)))
