from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.faults.shard import Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()
