"""The scrubber reads finished segments again, slowly and round after round, on a thread of its own.

A flipped bit is found before a reader asks for the record. Findings are reported; no file is changed."""

from __future__ import annotations

from collections.abc import Sequence

from commitlog import Files, Partition
from commitlog.index.segments import SegmentFile
from commitlog.read.partition_view import PartitionView
from commitlog.read.verify import Finding, verify_segment
from rumq.loop.ports import EventSink, ReadPool, Timers

IDLE_SECONDS = 60.0  # pause after each round over all segments


class Scrubber:
    """Reads the partitions of a store. passes: rounds that are over"""

    def __init__(
        self, files: Files, partitions: Sequence[Partition], worker: ReadPool, timers: Timers, events: EventSink, *,
        bytes_per_second: int,
    ) -> None:  # fmt: skip
        """bytes_per_second: 0 switches it off"""
        self._files, self._partitions, self._worker = files, partitions, worker
        self._rate = bytes_per_second
        self._timers, self._events = timers, events
        self._at = 0  # index of the partition that is scrubbed
        self._after = -1  # base lsn of the segment read last
        self.passes = 0
        self._reported: set[tuple[str, str]] = set()

    def begin(self) -> None:
        if self._rate:
            self._timers.later(IDLE_SECONDS, self.go_on)

    def go_on(self) -> None:
        """Read the next finished segment."""
        found = self._next()
        if found is None:
            self._timers.later(IDLE_SECONDS, self.go_on)
            return
        partition, segment = found
        path, size = segment.path, segment.bytes

        def verify() -> list[Finding]:
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
            self._report(partition, path, findings or [], fault)
            self._timers.later(max(0.01, size / self._rate), self.go_on)

        self._worker.submit(verify, done)

    def _next(self) -> tuple[Partition, SegmentFile] | None:
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

    def _report(self, partition: Partition, path: str, findings: list[Finding], fault: BaseException | None) -> None:
        """Report what was not reported in an earlier pass."""
        where = {"stream": partition.stream, "partition": partition.number}
        if fault is not None and (path, str(fault)) not in self._reported:
            self._reported.add((path, str(fault)))
            self._events.tell("log.failed", **where, why=f"{path} could not be read again: {fault}")
        for finding in findings:
            key = finding.where, finding.what
            if finding.severity == "error" and key not in self._reported:
                self._reported.add(key)
                self._events.tell(
                    "log.gap", **where, first_lsn=finding.base_lsn, next_lsn=finding.next_lsn,
                    why=f"{finding.where}: {finding.what}",
                )  # fmt: skip
