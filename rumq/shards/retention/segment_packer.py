"""Packing of finished segments of small chunks, beside the loop: one at a time, in short steps with pauses between.

A step takes about a millisecond of the interpreter, so messages hardly wait for it; the pauses bound what is read of
the disk. The file is put in place on the partition's own writer thread, between two groups. A segment that cannot be
packed stays as it is. docs/reference/log-format.md, "Packing"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commitlog import Partition, Store
from commitlog.chunk import NUMBER_MAX
from commitlog.log.packing import replaced, take_packing, take_replacement
from commitlog.read.log_reader import NODE
from commitlog.write.segment_packing import BLOCK_BYTES, SegmentPacking
from rumq.loop.ports import EventSink, LifecycleState, Timers
from rumq.shards.write_path.worker_threads import DiskWorkers

PACKING = 3  # the lane of the reader's worker
START_SECONDS = 10.0  # what an earlier run left waits: those who connect after a start come first
REST_SECONDS = 60.0  # after a failure, and while the disk is full


class SegmentPacker:
    """bytes_per_second: what is read at most; partitions: none where nothing is to be packed

    has_room: whether so many bytes may be written without taking room that records need
    below: of a partition, the lsn up to which segments may be packed now; asked again before a file is replaced"""

    def __init__(
        self, partitions: Sequence[Partition], workers: DiskWorkers, timers: Timers, lifecycle: LifecycleState,
        events: EventSink, *, bytes_per_second: int, has_room: Callable[[int], bool],
        below: Callable[[Partition], int] | None = None,
    ) -> None:  # fmt: skip
        self._partitions, self._workers = partitions, workers
        self._timers, self._lifecycle, self._events = timers, lifecycle, events
        self._has_room, self._below = has_room, below or unlimited
        self._looks_again = below is not None
        self._pause = BLOCK_BYTES / max(1, bytes_per_second)
        self._is_busy = False
        self._next = 0  # the partition that is looked at first
        if partitions:
            timers.later(START_SECONDS, self._look_again if self._looks_again else self.look)

    def _look_again(self) -> None:
        """What may be packed changes while nothing is written here."""
        self._timers.later(START_SECONDS, self._look_again)
        self.look()

    def look(self) -> None:
        """A segment may have been finished: pack it, unless one is being packed."""
        if self._is_busy or self._lifecycle.stop_phase:
            return
        for _ in range(len(self._partitions)):
            partition = self._partitions[self._next]
            packing = take_packing(partition, self._below(partition))
            if packing is not None:
                self._is_busy = True
                if self._has_room(packing.segment.disk_bytes):
                    self._step(partition, packing)
                else:
                    packing.segment.is_packed = False  # later
                    self._timers.later(REST_SECONDS, self._go_on)
                return
            self._next = (self._next + 1) % len(self._partitions)

    def _go_on(self) -> None:
        self._is_busy = False
        self.look()

    def _step(self, partition: Partition, packing: SegmentPacking) -> None:
        if self._lifecycle.stop_phase:
            packing.abandon()
            return

        def done(is_over: bool | None, fault: BaseException | None) -> None:
            if fault is not None:
                self._failed(partition, packing, fault)
            elif not is_over:
                self._timers.later(self._pause, lambda: self._step(partition, packing))
            elif packing.packed is None:
                self._timers.later(self._pause, self._go_on)
            else:
                self._replace(partition, packing)

        self._workers.reader.submit(packing.step, done, PACKING)

    def _replace(self, partition: Partition, packing: SegmentPacking) -> None:
        if self._lifecycle.stop_phase:  # the writer's thread may have ended
            packing.discard()
            return
        if self._below(partition) < (packing.segment.end_lsn or 0):
            packing.discard()
            packing.segment.is_packed = False  # later
            self._timers.later(REST_SECONDS, self._go_on)
            return
        replacement = take_replacement(partition, packing)
        if replacement is None and partition.segments.removing:  # perhaps others
            self._timers.later(self._pause, lambda: self._replace(partition, packing))
            return
        if replacement is None:
            packing.discard()
            self._timers.later(self._pause, self._go_on)
            return
        segment = packing.segment
        before = segment.disk_bytes

        def done(_: None, fault: BaseException | None) -> None:
            replaced(partition, replacement)
            if replacement.done:
                self._events.tell(
                    "log.packed", stream=partition.stream, partition=partition.number, first_lsn=segment.base_lsn,
                    next_lsn=segment.end_lsn, bytes=replacement.result().logical_end, bytes_before=before,
                )  # fmt: skip
            if fault is not None:
                self._failed(partition, packing, fault)
            else:
                self._timers.later(self._pause, self._go_on)

        self._workers.writer.submit(replacement.run, done, partition.index)

    def _failed(self, partition: Partition, packing: SegmentPacking, fault: BaseException) -> None:
        self._events.tell(
            "log.failed", stream=partition.stream, partition=partition.number,
            why=f"{packing.segment.path} could not be packed, and stays as it is: {fault}",
        )  # fmt: skip
        self._timers.later(REST_SECONDS, self._go_on)


def unlimited(partition: Partition) -> int:
    return NUMBER_MAX


def packable(store: Store, *, is_of_cluster: bool) -> list[Partition]:
    """None while the directory of a node is served alone: nobody there knows what the other nodes can read."""
    if not is_of_cluster and store.files.exists(f"{store.root}/{NODE}"):
        return []
    return list(store.own)
