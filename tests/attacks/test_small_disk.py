"""Attack: more is published than the disk can hold, with nobody to look after the broker. On a real file system.

It needs the right to mount one; without it the simulated disk shows the same (tests/faults/test_disk_space.py)."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("shards", [1, 2])
def test_an_unattended_broker_goes_on(small_disk: Path, shards: int) -> None:
    broker = Rumqd(small_disk / "data", "--set", f"shards.count={shards}")
    broker.start()
    try:
        with Peer(broker.address, deadline_s=20) as publisher:
            publisher.connect("p")
            for number in range(1, 46):  # 90 MB, 20 MB a second at most
                publisher.publish_all(f"t/{number % 7}", [bytes(100_000)] * 20, qos=1)
                time.sleep(0.1)
        broker.event("disk.low")
        assert broker.stop() == 0
        assert broker.named("log.full", "log.offline", "log.failed") == []
        trimmed = [said for said in broker.named("log.trimmed") if said["why"] == "space"]
        assert trimmed
        (said,) = broker.named("disk.bounds")
        assert said["total_bytes"] == 48 * MIB and "the oldest segments go" in said["why"]
    finally:
        broker.end()
