from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.assembly.context import ShardContext
from tests.faults.shard import Shard
from tests.shards.assembly.world import Built


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), status_seconds=10)
    yield made
    made.end()


@pytest.fixture
def built(shard: Shard) -> Built:
    """Another one over the same store, with settings that no default has."""
    context = ShardContext(
        linger_seconds=0.25,
        pending_bytes_max=7,
        free_bytes_min=8,
        free_percent_min=9,
        wanted_free_percent_min=5,
    )
    return Built(shard, context)
