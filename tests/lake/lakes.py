"""Logs to export, lakes to look into, and crashes, for the tests beside it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from commitlog import OpenOptions, RealFiles, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish
from tests.commitlog.records import DEAD, NOW, index, mark, numbers, view, write

SECOND = 1_000_000
HOUR = 3600 * SECOND
MADE_NOW = NOW - NOW % HOUR  # a full hour


class Log:
    """A log of one partition in memory. Segments are sealed by hand: a small size, and groups as large as one."""

    def __init__(self, root: Path | None = None) -> None:
        """root: where it is on the disk; None: in memory"""
        self.files: Any = SimulatedFiles() if root is None else RealFiles()
        spec = StreamSpec("main", ("#",), segment_bytes_max=20_480)
        self.store = open_store(
            self.files,
            str(root or "data"),
            StoreLayout([spec], lambda f, t: True),
            OpenOptions(NOW, random=numbers(1), direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        self.partition = self.store.partitions[0]
        self._topics: dict[bytes, int] = {}

    def publish(self, *packets: Publish, ts: int = MADE_NOW, client_id: str = "device-7", version: int = 5) -> None:
        """One group of messages."""
        wire, batch = Wire(version == 5, 1 << 20, 65535, 0), Batch()
        wire.publishers = [self.partition.add_publisher(client_id)]
        for packet in packets:
            frame = encode(packet, version)
            while ingest.cut(wire, [batch], frame, 0, len(frame), self._topics) == 0:
                self._topics[wire.topic] = self.partition.add_topic(wire.topic)
            wire.unacknowledged = 0
        rows, frames, count, flags, _ = batch.take()
        self.partition.append(rows, frames, count, flags, ts)
        assert write(self.partition)

    def fill(self, groups: int, *, ts: int = MADE_NOW, first: int = 0) -> None:
        """Groups of 20 messages of five topics; four make a segment."""
        for group in range(first, first + groups):
            self.publish(
                *(
                    Publish(
                        f"plant/{n % 5}/temp",
                        b"payload %06d " % (20 * group + n) + b"x" * 100,
                        1,
                        packet_id=1,
                    )
                    for n in range(20)
                ),
                ts=ts,
            )
        index(self.partition)
        mark(self.partition)

    def damage(self, segment: int, chunk: int) -> None:
        """Change a byte in the frames of a chunk."""
        found = view(self.files).segments()[segment]
        place = found.places[chunk]
        handle = self.files.open(found.path, write=True)
        self.files.write(handle, place.position + 128 + 32 * place.count + 70, [b"?"])
        self.files.close(handle)

    @property
    def finished_lsn(self) -> int:
        """Where the segment begins that is written to."""
        return self.partition.segments.active.base_lsn


def lake(log: Log, to: Path, **more: Any) -> Exporter:
    return Exporter(log.files, "data", LocalFolder(str(to)), **more)


def exported(log: Log, to: Path, **more: Any) -> Any:
    """Run an export and let the folder go again."""
    folder = LocalFolder(str(to))
    try:
        return Exporter(log.files, "data", folder, **more).run()
    finally:
        folder.unlock()


def parquet_files(to: Path) -> list[Path]:
    """What somebody finds who knows no manifest."""
    return sorted(path for path in to.glob("stream=*/**/*.parquet") if not path.name.startswith("_"))


def lsns_in(to: Path) -> list[int]:
    """Every lsn in every file that lies there, repeated ones too."""
    found: list[int] = []
    for path in parquet_files(to):
        found += pq.ParquetFile(path).read(columns=["lsn"]).column("lsn").to_pylist()
    return sorted(found)


def rows_in(to: Path) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in parquet_files(to)]).sort_by("lsn")


class Crash(Exception):
    pass


def crash_at(number: int, steps: list[str]) -> Any:
    """Note the steps, and crash at one, counted from 1; 0: at none."""

    def step(name: str) -> None:
        steps.append(name)
        if len(steps) == number:
            raise Crash(name)

    return step
