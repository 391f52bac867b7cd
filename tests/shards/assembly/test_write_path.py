"""Settings of the way to the disk."""

from tests.shards.assembly.world import Built


def test_settings_reach_their_parts(built: Built) -> None:
    writing = built.parts.writing
    assert writing.commit.linger == 0.25 and writing.backpressure.pending_bytes_max == 7
    assert writing.admission.free_bytes_min == 8 and writing.replication is None
