"""Settings of retention."""

from tests.shards.assembly.world import Built


def test_settings_reach_their_parts(built: Built) -> None:
    disk = built.parts.operation.disk
    assert disk.reserve == 8
    assert (disk.settings.percent, disk.settings.wanted_percent, disk.settings.is_first) == (9, 5, True)
