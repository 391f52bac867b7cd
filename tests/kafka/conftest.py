"""A broker with its Kafka server, and a log that has something of everything. Without crc32c all tests are skipped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("crc32c", reason="crc32c is not installed (pip install 'rumq[kafka]')")

from commitlog import Chunk, RealFiles
from commitlog.read.log_reader import LogReader
from rumq.kafka.kernels.record_batches import topic_at
from tests.broker_process import Rumqd
from tests.spark.logs import write_example

VIEW = 'kafka.view=[{ name = "tenth", filter = "plant/3/#" }, { name = "none", filter = "nowhere/#" }]'
Row = tuple[int, int, str, bytes]  # partition, lsn, MQTT topic, payload


class KafkaBroker:
    """process: the broker; port: of its Kafka server"""

    def __init__(self, process: Rumqd) -> None:
        self.process = process
        self.port = 0

    def start(self) -> None:
        self.process.start()
        self.reach()

    def reach(self, number: int = 1) -> dict[str, Any]:
        """The Kafka server that has started as the so manieth of this run."""
        count = number
        while True:
            self.process.event("listener.bound", number=count)
            bound = self.process.named("listener.bound")
            found = [each for each in bound if each["protocol"].startswith("kafka")]
            if len(found) >= number:
                self.port = found[-1]["port"]
                return found[-1]
            count = len(bound) + 1

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def rows(self, stream: str = "main") -> list[Row]:
        """What the log's own reader finds in the files, by partition and lsn."""
        found = []
        for view in LogReader(RealFiles(), str(self.process.data)).partitions():
            if view.stream == stream:
                for chunk in view.chunks(view.first_lsn, view.end_lsn):
                    assert isinstance(chunk, Chunk)
                    found += [(view.number, *row) for row in rows_of(chunk)]
        return sorted(found)


def rows_of(chunk: Chunk) -> Iterator[tuple[int, str, bytes]]:
    words = memoryview(chunk.rows).cast("B").cast("I")
    for row in range(chunk.count):
        start, payload = words[row * 8 + 1], words[row * 8 + 1] + words[row * 8 + 5]
        stop = words[row * 8 + 9] if row + 1 < chunk.count else len(chunk.frames)
        yield chunk.base_lsn + row, topic_at(chunk.frames, start).decode(), bytes(chunk.frames[payload:stop])


@contextmanager
def kafka_broker(data: Path, *flags: str) -> Iterator[KafkaBroker]:
    found = KafkaBroker(Rumqd(data, "--set", "kafka.port=-1", "--set", "kafka.host=127.0.0.1", *flags))
    try:
        found.start()
        yield found
        failed = found.process.named("kafka.failed", "kafka.died")
        assert not failed, [each.get("exception", each) for each in failed[:3]]
    finally:
        found.process.end()


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of plant/0/temp to plant/2/temp in turn, in main/g1/p0."""
    made = str(tmp_path_factory.mktemp("kafka") / "data")
    write_example(made)
    return made
