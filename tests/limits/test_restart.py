"""How long a start takes, with many topics and a long log: it must not grow with the log.

The log of 100 GB is sparse: as many finished segments as it would have, each with a hole behind what counts of it."""

import os
import time
from pathlib import Path

import pytest

from commitlog import OpenOptions, RealFiles, StoreLayout, StreamSpec, open_store
from tests.broker_process import Rumqd
from tests.commitlog.records import append, index, write
from tests.limits.conftest import Dial

SEGMENT_BYTES = 64 << 20
BATCH = 10_000


def fill(data: Path, topics: int, segments: int) -> None:
    """One record of each topic, then small segments of records until there are so many."""
    spec = StreamSpec("main", ("#",), 1, "process", segment_bytes_max=32 << 20, segment_seconds_max=10**6)
    now = time.time_ns() // 1000
    store = open_store(
        RealFiles(), str(data), StoreLayout([spec], lambda f, t: True), OpenOptions(now, hot_bytes_max=0)
    )
    partition = store.partitions[0]
    for first in range(0, topics, BATCH):
        append(
            partition,
            [(b"plant/%d/temp" % n, b"21.5") for n in range(first, min(topics, first + BATCH))],
            now,
        )
        assert write(partition)
        index(partition)
    partition.writer._bytes_max = 8192
    for n in range(segments):
        append(partition, [(b"plant/%d/temp" % (n % topics), bytes(4000))] * 2, now)
        assert write(partition)
        index(partition)
    assert not store.close()
    for path in data.rglob("*.seg"):
        if path.stat().st_size < SEGMENT_BYTES:
            os.truncate(path, SEGMENT_BYTES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("topics", "segments", "seconds_max"),
    [(10_000, 10, 1.0), (1_000_000, 1600, 5.0)],
    ids=["10k", "1M, 100 GB"],
)
def test_a_start_is_quick(
    data: Path, join: Dial, topics: int, segments: int, seconds_max: float, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(data, topics, segments)
    broker = Rumqd(data)
    try:
        for how in ("stopped", "killed"):
            began = time.monotonic()
            broker.start()
            took = time.monotonic() - began
            with capsys.disabled():
                held = sum(p.stat().st_size for p in data.rglob("*.seg")) / 1e9
                print(f"\n{topics:,} topics, {held:.0f} GB, {how}: ready after {took:.2f} s")
            assert took < seconds_max
            publisher = join(broker, how)
            publisher.publish("plant/1/temp", b"22", qos=1)
            if how == "stopped":
                broker.kill()
    finally:
        broker.end()
