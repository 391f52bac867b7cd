"""Attack: more is published than the disk can hold, with nobody to look after the broker. On a real file system.

It needs the right to mount one; without it the simulated disk shows the same (tests/faults/test_disk_space.py)."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.process.shard.shutdown import STOP_SECONDS_MAX
from tests.broker_process import SECONDS_MAX, Rumqd
from tests.conformance.peer import Peer
from tests.conformance.wire import publish

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)], check=True, capture_output=True)
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
        with Peer(broker.address) as publisher:
            publisher.connect("p")
            for number in range(1, 46):  # 90 MB
                wait_for_room(small_disk)
                publisher.publish_all(f"t/{number % 7}", [bytes(100_000)] * 20, qos=1)
        broker.event("disk.low")
        assert broker.stop() == 0
        assert broker.named("log.full", "log.offline", "log.failed") == []
        trimmed = [said for said in broker.named("log.trimmed") if said["why"] == "space"]
        assert trimmed
        (said,) = broker.named("disk.bounds")
        assert said["total_bytes"] == 48 * MIB and "the oldest segments go" in said["why"]
    finally:
        broker.end()


def wait_for_room(place: Path) -> None:
    """Until the broker has made room for 2 MB above the 3 MiB that it keeps free, however slow the machine is."""
    until = time.monotonic() + SECONDS_MAX
    while (free := shutil.disk_usage(place).free) < 5.5 * MIB:
        assert time.monotonic() < until, f"{free:,} bytes are free, and it does not get more"
        time.sleep(0.01)


def publish_until_offline(broker: Rumqd, publisher: Peer) -> None:
    """At most 120 MB; once the disk is full the publisher is not read any more."""
    publisher.socket.settimeout(0.1)
    for number in range(1, 1200):
        left = memoryview(publish(f"t/{number % 7}", bytes(100_000), 1, number))
        while left:
            if broker.named("log.offline"):
                return
            with contextlib.suppress(TimeoutError):
                left = left[publisher.socket.send(left) :]
    broker.event("log.offline")


@pytest.mark.parametrize("shards", [1, 2])
def test_a_stop_does_not_wait_for_a_disk_that_is_full(small_disk: Path, shards: int) -> None:
    """What could not be written has waited already; a phase of the stop would wait 30 s for it, in vain."""
    settings = {"shards.count": shards, "log.retention": "forever", "log.free_bytes_min": 0}
    broker = Rumqd(small_disk / "data", *(f"--set={name}={value}" for name, value in settings.items()))
    broker.start()
    try:
        with Peer(broker.address) as publisher:
            publisher.connect("p")
            publish_until_offline(broker, publisher)
        begun = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - begun < STOP_SECONDS_MAX, "no phase has waited for its limit"
        assert broker.named("log.unwritten")
    finally:
        broker.end()
