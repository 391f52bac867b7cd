"""The scrubber: finished segments are read again, slowly, one after the other and from the beginning again.

A flipped bit is found before somebody asks for the record. It reads on a thread of its own and never changes a file;
what it finds is told. Knows no record's meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog import Files
from commitlog.partition_view import PartitionView
from commitlog.verify import Finding, verify_segment
from rumq.shards.write_path.worker_threads import Worker

IDLE_SECONDS = 60.0  # nothing finished yet: look again


class Scrubber:
    """Goes round the partitions of a store. bytes_per_second: how fast; 0: never."""

    def __init__(
        self, files: Files, partitions: list[Any], worker: Worker, bytes_per_second: int, *,
        event: Callable[..., None], later: Callable[[float, Callable[[], None]], None],
    ) -> None:  # fmt: skip
        self._files, self._partitions, self._worker = files, partitions, worker
        self._rate = bytes_per_second
        self._event, self._later = event, later
        self._at = 0  # partition
        self._after = -1  # base lsn of the segment looked at last
        self.passes = 0
        self._told: set[tuple[str, str]] = set()

    def begin(self) -> None:
        if self._rate:
            self._later(IDLE_SECONDS, self.go_on)

    def go_on(self) -> None:
        """Look at the next finished segment."""
        found = self._next()
        if found is None:
            self._later(IDLE_SECONDS, self.go_on)
            return
        partition, segment = found
        path, size = segment.path, segment.bytes

        def look() -> list[Finding]:
            view = PartitionView(
                self._files,
                partition.directory,
                partition.stream,
                partition.generation,
                partition.number,
                held=True,
            )
            return list(verify_segment(self._files, view, path))

        def done(findings: list[Finding] | None, fault: BaseException | None) -> None:
            self._tell(partition, path, findings or [], fault)
            self._later(max(0.01, size / self._rate), self.go_on)

        self._worker.submit(look, done)

    def _next(self) -> tuple[Any, Any] | None:
        """The segment after the one before; None at the end of a pass."""
        while self._at < len(self._partitions):
            partition = self._partitions[self._at]
            for segment in partition.segments.snapshot():
                if segment.end_lsn is not None and segment.base_lsn > self._after:
                    self._after = segment.base_lsn
                    return partition, segment
            self._at, self._after = self._at + 1, -1
        self._at = 0
        self.passes += 1
        return None

    def _tell(self, partition: Any, path: str, findings: list[Finding], fault: BaseException | None) -> None:
        """What was told in an earlier pass is not told again."""
        where = {"stream": partition.stream, "partition": partition.number}
        if fault is not None and (path, str(fault)) not in self._told:
            self._told.add((path, str(fault)))
            self._event("log.failed", **where, why=f"{path} could not be read again: {fault}")
        for finding in findings:
            key = finding.where, finding.what
            if finding.severity == "error" and key not in self._told:
                self._told.add(key)
                self._event(
                    "log.gap", **where, first_lsn=finding.base_lsn, next_lsn=finding.next_lsn,
                    why=f"{finding.where}: {finding.what}",
                )  # fmt: skip
