"""What the operator sees of a shard."""

from commitlog.testing.simulated_files import SimulatedFiles
from tests.faults.shard import Shard


def test_its_status_is_published_only_if_asked_for(shard: Shard) -> None:
    assert shard.parts.operation.status is not None
    other = Shard(SimulatedFiles())
    assert other.parts.operation.status is None
    other.end()
