"""Retention waits for the exporter's markers."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from commitlog.disk.export_marker import write_exported
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.export_positions import ExportPositions
from tests.commitlog.records import DIRECTORY, opened


class Reader:
    """The thread that waits for disks, done by hand."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[..., None]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[..., None], lane: int = 0) -> None:
        self.jobs.append((job, done))

    def run(self) -> None:
        while self.jobs:
            job, done = self.jobs.pop(0)
            done(job(), None)


def test_retention_knows_what_is_exported_once_the_note_is_read() -> None:
    files, reader = SimulatedFiles(), Reader()
    opened(files)
    part = SimpleNamespace(stream="main", directory=DIRECTORY)
    exports = ExportPositions(files, ["main"], 1000)
    assert exports.wanted_lsn(part, reader) == 0, "nothing is known: nothing may go"
    write_exported(files, DIRECTORY, 70)
    assert exports.wanted_lsn(part, reader) == 0 and len(reader.jobs) == 1, "asked once at a time"
    reader.run()
    assert exports.wanted_lsn(part, reader) == 70


def test_streams_that_nobody_exports_wait_for_nobody() -> None:
    part = SimpleNamespace(stream="other", directory=DIRECTORY)
    assert ExportPositions(SimulatedFiles(), ["main"], 1000).wanted_lsn(part, Reader()) is None
    part.stream = "main"
    assert ExportPositions(SimulatedFiles(), ["main"], 0).wanted_lsn(part, Reader()) is None
