"""The row of a partition: places, sizes and times, the same in every answer that has it."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.admin.listings.partition_row import partition_row
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def test_it_has_the_place_and_the_times_of_the_records(shard: Shard) -> None:
    client = Client(shard, "c", 5)
    for _ in range(3):
        publish(shard, client, "t")
    partition = next(each for each in shard.store.own if each.next_lsn)
    row = partition_row(partition, 4)
    assert (row.first_lsn, row.next_lsn, row.committed_lsn, row.topics, row.shard) == (0, 3, 3, 1, 4)
    assert 0 < row.first_time_us <= row.last_time_us == partition.last_ts
    assert row.bytes == partition.segments.bytes > 0 and row.offline is None


def test_status_partitions_and_metrics_have_the_same_row(shard: Shard) -> None:
    publish(shard, Client(shard, "c", 5), "t")
    rows = ask(shard, "partitions").partitions
    assert ask(shard, "status").partitions == rows and any(row.last_time_us for row in rows)
