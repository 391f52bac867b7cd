"""From a topic and an offset to its record, in a log of a million topics: how long, measured and printed."""

import os
import random
import statistics
import time
from pathlib import Path

import pytest

from commitlog import Chunk, OpenOptions, Partition, RealFiles, StoreLayout, StreamSpec, open_store
from tests.limits.test_restart import fill

TOPICS = 1_000_000
SEED = 20_261
COLD_MS_MAX, WARM_MS_MAX = 20.0, 1.0


def milliseconds(partition: Partition, number: int) -> float:
    """To the first record of a topic, read and checked."""
    topic = b"plant/%d/temp" % number
    began = time.perf_counter()
    lsn = partition.find_offset(topic, 0).run()
    (chunk, *_) = partition.cold_read(lsn, 1).run()
    took = (time.perf_counter() - began) * 1e3
    assert isinstance(chunk, Chunk)
    assert chunk.base_lsn <= lsn < chunk.next_lsn
    return took


def forget(data: Path) -> None:
    """Have the kernel drop what it keeps of the files."""
    for path in data.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


@pytest.mark.long
def test_an_offset_is_found_quickly(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(data, TOPICS, 0)
    spec = StreamSpec("main", ("#",), 1, "process", segment_bytes_max=32 << 20, segment_seconds_max=10**6)
    store = open_store(
        RealFiles(),
        str(data),
        StoreLayout([spec], lambda f, t: True),
        OpenOptions(time.time_ns() // 1000, hot_bytes_max=0),
    )
    chance = random.Random(SEED)
    cold = []
    for _ in range(9):
        forget(data)
        cold.append(milliseconds(store.partitions[0], chance.randrange(TOPICS)))
    for path in data.rglob("*"):
        if path.is_file():
            path.read_bytes()
    warm = [milliseconds(store.partitions[0], chance.randrange(TOPICS)) for _ in range(99)]
    store.close()
    with capsys.disabled():
        print(f"\n{TOPICS:,} topics, seed {SEED}: (topic, offset) to record: cold {statistics.median(cold):.1f} ms")
        print(f"(first {cold[0]:.1f}), warm {statistics.median(warm):.2f} ms (slowest {max(warm):.2f})")
    assert statistics.median(cold) <= COLD_MS_MAX
    assert statistics.median(warm) <= WARM_MS_MAX
