"""Group commit: pending chunks of a partition go to its writer as one write group, and are acknowledged once committed.

While one group is written the next one gathers. The only timer: QoS 0 records, for which no client waits, may linger to
form larger groups."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import NamedTuple

from commitlog.log.partition import Partition
from commitlog.log.store import Store
from commitlog.write.segment_writer import Flush
from commitlog.write.write_group import WriteGroup
from router.commands import CommandQueue, Committed
from rumq.loop.ports import Clock, EventSink
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.state.histogram import Histogram
from rumq.shards.write_path.worker_threads import DiskWorkers, LogStateUnknown
from rumq.shards.write_path.write_admission import WriteAdmission

WRITE_BYTES = 1 << 18  # a group of so many bytes is written at once, whether anyone waits or not
MARK_SECONDS = 0.05  # after the last group, until the watermark is noted on disk
ROOM_WAITS_MAX = 8  # groups that may pass before the next room is preallocated
RETRY_SECONDS = 1.0  # until an offline partition is tried again
SLOW_SECONDS = 2.0


class CommitOptions(NamedTuple):
    """linger_seconds: of records for which nobody waits; copied: told which partition has ended a group, where
    followers copy it; None on a node alone"""

    linger_seconds: float
    copied: Callable[[int], None] | None = None


class GroupCommit:
    """The write side of every partition of a shard; each has a lane of the writer."""

    def __init__(
        self, store: Store, workers: DiskWorkers, acks: AckTracker, admission: WriteAdmission, commands: CommandQueue,
        clock: Clock, events: EventSink, options: CommitOptions,
    ) -> None:  # fmt: skip
        assert store.internal is not None
        self._partitions = [p.ack_source for p in [*store.partitions, store.internal]]
        self._routed = len(store.partitions)  # the partitions that the router reads
        self._own = [(p.index, p) for p in [*store.own, store.internal]]
        self._workers = workers
        self._acks, self._admission = acks, admission
        self._commands, self._clock, self._events = commands, clock, events
        self.linger, self._copied = options.linger_seconds, options.copied
        count = len(self._partitions)
        self._in_flight = [False] * count
        self._due: list[float | None] = [None] * count
        self._mark_due: list[float | None] = [None] * count
        self._retry = [0.0] * count
        self._rolls: set[int] = set()
        self._offline: set[int] = set()  # partitions whose last group could not be written
        self._given_up: set[int] = set()  # partitions that could not be written since the stop began
        self.is_draining = False  # True while the broker stops: every group is due at once
        self.is_frozen = False  # True while the shard is handed over to another node: nothing more is written
        self.submitted_bytes = 0  # bytes handed to the writers so far
        self.writes = Histogram()  # of groups, from the hand-over to the writer until the loop knows of the end
        self._submitted = [0.0] * count
        self.slow_groups: list[int] = [0] * count  # by partition: slow groups in a row

    def roll(self, index: int) -> None:
        """Go on in a new segment of a partition, as soon as nothing of it is being written."""
        self._rolls.add(index)

    def urgent(self, index: int) -> None:
        """Somebody waits for what was appended to a partition."""
        self._acks.urgent[index] = True

    def end_turn(self) -> None:
        """Hand to the writer what is due."""
        if self.is_frozen:
            return
        now_us, now = self._clock.now_us, self._clock.monotonic
        urgent = self._acks.urgent
        for index, partition in self._own:
            if self._in_flight[index]:
                continue
            if self._rolls and index in self._rolls:
                self._rolls.discard(index)
                roll = partition.take_roll(now_us)
                if roll is not None:
                    self._submit(index, partition, roll)
                    continue
            pending = partition.pending_bytes
            # While nothing waits, if possible.
            if partition.wants_room > (ROOM_WAITS_MAX if pending else 0) and not self.is_draining:
                room = partition.take_preallocation()
                if room is not None:
                    self._submit(index, partition, room)
                    continue
            if not pending:
                # When nothing follows, the last group's mark is still to be written: readers of the files wait for it.
                mark = self._mark_due[index]
                if mark is not None and mark <= now:
                    self._mark_due[index] = None
                    group = partition.take_mark(now_us)
                    if group is not None:
                        self._submit(index, partition, group)
                continue
            due = self._due[index]
            if due is None:
                due = self._due[index] = now + self.linger
            if self._retry[index] > now:
                continue
            if self.is_draining or urgent[index] or pending >= WRITE_BYTES or due <= now:
                group = partition.take_group()
                if group is not None:
                    urgent[index] = False
                    self._submit(index, partition, group)

    def _submit(self, index: int, partition: Partition, group: WriteGroup) -> None:
        self._due[index] = None
        self.submitted_bytes += group.bytes
        self._in_flight[index] = True
        self._submitted[index] = monotonic()
        flush = group.begin() if group.is_small() else None
        if flush is None:
            self._run(index, partition, group)
        elif flush.syncs:
            self._flush(index, partition, group, flush)
        else:
            self._write(index, partition, group, flush)

    def _write(self, index: int, partition: Partition, group: WriteGroup, flush: Flush) -> None:
        """Write a group on the loop, if its thread has nothing to do."""
        try:
            has_written = self._workers.writer.maybe_write(flush)
        except BaseException as fault:
            self._flushed(index, partition, group, fault)
            return
        if has_written:
            group.end()
            self._written(index, partition, group, None)
        else:
            self._flush(index, partition, group, flush)

    def _flush(self, index: int, partition: Partition, group: WriteGroup, flush: Flush) -> None:
        self._workers.writer.flush(flush, lambda _, fault: self._flushed(index, partition, group, fault), index)

    def _run(self, index: int, partition: Partition, group: WriteGroup) -> None:
        self._workers.writer.submit(group.run, lambda _, fault: self._written(index, partition, group, fault), index)

    def _flushed(self, index: int, partition: Partition, group: WriteGroup, fault: BaseException | None) -> None:
        if isinstance(fault, Exception):
            group.failed(fault)
            self._run(index, partition, group)  # goes on in another segment
            return
        if fault is None:
            group.end()
        self._written(index, partition, group, fault)

    def _written(self, index: int, partition: Partition, group: WriteGroup, fault: BaseException | None) -> None:
        self._in_flight[index] = False
        if fault is not None:
            raise LogStateUnknown(f"what became of a group of the log is unknown: {fault!r}") from fault
        failure = partition.complete(group)
        if self._copied is not None:
            self._copied(index)
        if partition.offline is not None:
            self._retry[index] = self._clock.monotonic + RETRY_SECONDS
            self._offline.add(index)
            if self.is_draining:
                self._given_up.add(index)
            number = group.offline.errno if group.offline else None
            self._admission.offline(index, number, str(partition.offline))
            return
        if failure is not None:
            self._events.tell("log.failed", stream=partition.stream, partition=partition.number, why=str(failure))
        if group.chunks:
            if index in self._offline:
                self._offline.discard(index)
                self._admission.online(index)
            self._mark_due[index] = self._clock.monotonic + MARK_SECONDS
            seconds = monotonic() - self._submitted[index]
            self.writes.observe(seconds)
            for chunk in group.chunks:
                if chunk.traces is not None:
                    chunk.traces.committed(f"{partition.stream}/{partition.number}", seconds)
            self.slow_groups[index] = self.slow_groups[index] + 1 if seconds >= SLOW_SECONDS else 0
        if len(group.news) > 1 or not group.chunks:  # more than its chunk: segments came and went
            while (job := partition.take_seal_job()) is not None:
                self._workers.reader.submit(job.run, self._indexed)
        if self._copied is not None and partition.replicated_lsn is not None:
            return  # it is committed once a majority has it: `replicated`
        if index < self._routed:
            self._commands.put(Committed(index, partition.committed_lsn))
        self._acks.release(index)

    def replicated(self, index: int, lsn: int) -> None:
        """A majority of the copies of a partition, this one among them, has synced everything below an lsn."""
        partition = self._partitions[index]
        assert isinstance(partition, Partition)
        partition.note_replicated(lsn)
        self._mark_due[index] = self._clock.monotonic + MARK_SECONDS
        if index < self._routed:
            self._commands.put(Committed(index, lsn))
        self._acks.release(index)

    @property
    def space(self) -> WriteAdmission:
        """Who knows how much is free."""
        return self._admission

    def give_up(self, seconds: float, why: str) -> int:
        """As of `AckTracker`."""
        return self._acks.give_up(seconds, why)

    def busy_seconds(self) -> float:
        """How long the oldest group in flight has been so."""
        began = [at for at, busy in zip(self._submitted, self._in_flight, strict=True) if busy]
        return monotonic() - min(began) if began else 0.0

    def is_written(self) -> bool:
        """Whether nothing is pending or being written."""
        return not any(self._in_flight) and not any(p.pending_bytes for _, p in self._own)

    def is_settled(self) -> bool:
        """Whether nothing is being written."""
        return not any(self._in_flight)

    def freeze(self, is_frozen: bool) -> None:
        """Write nothing more, whatever is pending; or go on."""
        self.is_frozen = is_frozen

    def _indexed(self, _: object, fault: BaseException | None) -> None:
        if fault is not None:  # the segment itself is whole: its index is made again when it is asked for
            self._events.tell("log.failed", why=f"a segment could not be indexed: {fault}")

    @property
    def pending_bytes(self) -> int:
        pending = 0
        for partition in self._partitions:
            pending += partition.pending_bytes
        return pending

    def next_deadline(self) -> float:
        """When something is due that no writer is busy with, in monotonic seconds; inf: nothing is."""
        due = inf
        for index, at in enumerate(self._due):
            if self._in_flight[index]:
                continue
            if at is None:
                at = self._mark_due[index]
            if at is None:
                continue
            at = max(at, self._retry[index])
            if at < due:
                due = at
        return due

    def idle(self) -> bool:
        """Whether all is written that can be: for a partition whose disk refuses it a stop does not wait."""
        return not any(self._in_flight) and not any(
            p.pending_bytes and index not in self._given_up and not self._admission.is_offline_elsewhere(index)
            for index, p in enumerate(self._partitions)
        )

    def unwritten(self) -> list[tuple[Partition, int]]:
        """(partition, bytes) of what its disk would not take; nobody was promised it."""
        return [(p, p.pending_bytes) for _, p in self._own if p.pending_bytes]
