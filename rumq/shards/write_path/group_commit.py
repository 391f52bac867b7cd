"""Group commit: pending chunks of a partition go to its writer as one write group, and are acknowledged once committed.

While one group is written the next one gathers. The only timer: QoS 0 records, for which no client waits, may linger to
form larger groups."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple

from commitlog.log.partition import Partition
from commitlog.log.store import Store
from commitlog.write.segment_writer import Flush
from commitlog.write.write_group import WriteGroup
from router.commands import committed
from rumq.loop.kernels import system_clock
from rumq.loop.ports import EventSink
from rumq.loop.queues import StepQueue
from rumq.loop.scheduler import ShardClock
from rumq.loop.stage import Stage
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.state.histogram import Histogram
from rumq.shards.write_path.bulk_allowance import BulkAllowance
from rumq.shards.write_path.worker_threads import DiskWorkers, LogStateUnknown
from rumq.shards.write_path.write_admission import WriteAdmission
from rumq.shards.write_path.write_lane import Submitted, WriteLane

WRITE_BYTES = 1 << 18  # a group of so many bytes is written at once, whether anyone waits or not
MARK_SECONDS = 0.05  # after the last group, until the watermark is noted on disk
# Nobody reads the session journal beside the broker, and a checkpoint a second has the mark: a page less an entry.
JOURNAL_MARK_SECONDS = 2.0
ROOM_WAITS_MAX = 8  # groups that may pass before the next room is preallocated
RETRY_SECONDS = 1.0  # until an offline partition is tried again
SLOW_SECONDS = 2.0
NEVER = inf


def nothing() -> None:
    pass


class CommitOptions(NamedTuple):
    """linger_seconds: of records for which nobody waits; copied: told which partition has ended a group, where
    followers copy it; None on a node alone"""

    linger_seconds: float
    copied: Callable[[int], None] | None = None


class GroupCommit(Stage):
    """The write side of every partition of a shard; each has a lane of the writer."""

    def __init__(
        self, store: Store, workers: DiskWorkers, acks: AckTracker, admission: WriteAdmission, commands: StepQueue,
        clock: ShardClock, events: EventSink, options: CommitOptions,
    ) -> None:  # fmt: skip
        assert store.internal is not None
        self._partitions = [p.ack_source for p in [*store.partitions, store.internal]]
        self._routed = len(store.partitions)  # the partitions that the router reads
        self._lanes = [WriteLane(p) for p in [*store.own, store.internal]]
        for lane in self._lanes:
            lane.flushed, lane.written = partial(self._flushed, lane), partial(self._ended, lane)
            lane.mark_seconds = MARK_SECONDS
        self._writer, self._reader = workers
        self._acks, self._admission = acks, admission
        self._commands, self._clock, self._events = commands, clock, events
        self.linger, self._copied = options.linger_seconds, options.copied
        if self._copied is None:
            self._lanes[-1].mark_seconds = JOURNAL_MARK_SECONDS
        self._rolls: set[int] = set()
        self._offline: set[int] = set()  # partitions whose last group could not be written
        self._given_up: set[int] = set()  # partitions that could not be written since the stop began
        self.is_draining = False  # True while the broker stops: every group is due at once
        self.is_frozen = False  # True while the shard is handed over: what came later is not written
        self.submitted = Submitted()
        self.writes = Histogram()  # of groups, from the hand-over to the writer until the loop knows of the end
        self.on_indexed: Callable[[], None] = nothing  # a segment was indexed
        self.slow_groups: list[int] = [0] * len(self._partitions)  # by partition: slow groups in a row

    def roll(self, index: int) -> None:
        """Go on in a new segment of a partition, as soon as nothing of it is being written."""
        self._rolls.add(index)

    def urgent(self, index: int) -> None:
        """Somebody waits for what was appended to a partition."""
        self._acks.urgent[index] = True

    def end_turn(self) -> None:
        """Hand to the writer what is due."""
        now = self._clock.monotonic
        if self.is_frozen:
            self._end_frozen_turn(now)
            return
        for lane in self._lanes:
            if lane.group is None:
                if lane.partition.pending_bytes:
                    self._pending(lane, now)
                elif self._rolls or lane.partition.wants_room or lane.mark_due_at <= now:
                    self._nothing_pending(lane, now)

    def _end_frozen_turn(self, now: float) -> None:
        """Write what was there when the shard was frozen."""
        for lane in self._lanes:
            if lane.group is None and lane.is_unwritten() and lane.retry_at <= now:
                group = lane.partition.take_group()
                if group is not None:
                    self._submit(lane, group)

    def _pending(self, lane: WriteLane, now: float) -> None:
        """Write what is pending, if it is due."""
        partition = lane.partition
        if self._rolls and self._roll(lane):
            return
        if partition.wants_room > ROOM_WAITS_MAX and self._preallocate(lane):
            return
        if lane.due_at == NEVER:
            lane.due_at = now + self.linger
        if lane.retry_at > now:
            return
        if (
            lane.due_at <= now
            or self.is_draining
            or self._acks.urgent[lane.index]
            or partition.pending_bytes >= WRITE_BYTES
            # bulk senders wait until it is written
            or (partition.pending_bytes > lane.allowance.shared_bytes and self._acks.is_awaited(lane.index))
        ):
            group = partition.take_group()
            if group is not None:
                self._acks.urgent[lane.index] = False
                self._submit(lane, group)

    def _nothing_pending(self, lane: WriteLane, now: float) -> None:
        """What is written while nothing waits, if possible."""
        if self._rolls and self._roll(lane):
            return
        if lane.partition.wants_room and self._preallocate(lane):
            return
        if lane.mark_due_at <= now:
            # When nothing follows, the last group's mark is still to be written: readers of the files wait for it.
            lane.mark_due_at = NEVER
            group = lane.partition.take_mark(self._clock.now_us)
            if group is not None:
                self._submit(lane, group)

    def _roll(self, lane: WriteLane) -> bool:
        if lane.index not in self._rolls:
            return False
        self._rolls.discard(lane.index)
        group = lane.partition.take_roll(self._clock.now_us)
        if group is not None:
            self._submit(lane, group)
        return group is not None

    def _preallocate(self, lane: WriteLane) -> bool:
        group = None if self.is_draining else lane.partition.take_preallocation()
        if group is not None:
            self._submit(lane, group)
        return group is not None

    def _submit(self, lane: WriteLane, group: WriteGroup) -> None:
        lane.due_at = NEVER
        lane.group = group
        lane.submitted_at = system_clock.monotonic()
        self.submitted.bytes += group.bytes
        flush = group.begin() if group.is_small() else None
        if flush is None:
            self._writer.submit(group.run, lane.written, lane.index)
        elif flush.syncs:
            self._writer.flush(flush, lane.flushed, lane.index)
        else:
            self._write(lane, group, flush)

    def _write(self, lane: WriteLane, group: WriteGroup, flush: Flush) -> None:
        """Write a group on the loop, if its thread has nothing to do."""
        try:
            has_written = self._writer.maybe_write(flush)
        except BaseException as fault:
            self._flushed(lane, None, fault)
            return
        if has_written:
            group.end()
            self._written(lane, group)
        else:
            self._writer.flush(flush, lane.flushed, lane.index)

    def _flushed(self, lane: WriteLane, _: object, fault: BaseException | None) -> None:
        """A small group was written and synced, as far as that is due, or was not."""
        group = lane.group
        assert group is not None
        if isinstance(fault, Exception):
            group.failed(fault)
            self._writer.submit(group.run, lane.written, lane.index)  # goes on in another segment
            return
        if fault is None:
            group.end()
        self._ended(lane, None, fault)

    def _ended(self, lane: WriteLane, _: object, fault: BaseException | None) -> None:
        group = lane.group
        assert group is not None
        if fault is not None:
            lane.group = None
            raise LogStateUnknown(f"what became of a group of the log is unknown: {fault!r}") from fault
        self._written(lane, group)

    def _written(self, lane: WriteLane, group: WriteGroup) -> None:
        index, partition = lane.index, lane.partition
        lane.group = None
        failure = partition.complete(group)
        if self._copied is not None:
            self._copied(index)
        if partition.offline is not None:
            self._went_offline(lane, group)
            return
        if failure is not None:
            self._events.tell("log.failed", stream=partition.stream, partition=partition.number, why=str(failure))
        if group.chunks:
            self._note_written(lane, group)
        if len(group.news) > 1 or not group.chunks:  # more than its chunk: segments came and went
            while (job := partition.take_seal_job()) is not None:
                self._reader.submit(job.run, self._indexed)
        if self._copied is not None and partition.replicated_lsn is not None:
            return  # it is committed once a majority has it: `replicated`
        if index < self._routed:
            self._commands.items.append(committed(index, partition.committed()))
        self._acks.release(index)

    def _note_written(self, lane: WriteLane, group: WriteGroup) -> None:
        """Records were written: measure, and tell who follows them."""
        index = lane.index
        if self._offline and index in self._offline:
            self._offline.discard(index)
            self._admission.online(index)
        lane.mark_due_at = self._clock.monotonic + lane.mark_seconds
        seconds = system_clock.monotonic() - lane.submitted_at
        self.writes.observe(seconds)
        lane.allowance.note(group.bytes, seconds, self._clock.monotonic)
        if seconds >= SLOW_SECONDS:
            self.slow_groups[index] += 1
        elif self.slow_groups[index]:
            self.slow_groups[index] = 0
        for chunk in group.chunks:
            if chunk.traces is not None:
                chunk.traces.committed(f"{lane.partition.stream}/{lane.partition.number}", seconds)

    def _went_offline(self, lane: WriteLane, group: WriteGroup) -> None:
        index = lane.index
        lane.retry_at = self._clock.monotonic + RETRY_SECONDS
        self._offline.add(index)
        if self.is_draining:
            self._given_up.add(index)
        self._admission.offline(index, group.offline.errno if group.offline else None, str(lane.partition.offline))

    def replicated(self, index: int, lsn: int) -> None:
        """A majority of the copies of a partition, this one among them, has synced everything below an lsn."""
        partition = self._partitions[index]
        assert isinstance(partition, Partition)
        partition.note_replicated(lsn)
        for lane in self._lanes:
            if lane.partition is partition:
                lane.mark_due_at = self._clock.monotonic + lane.mark_seconds
        if index < self._routed:
            self._commands.items.append(committed(index, lsn))
        self._acks.release(index)

    @property
    def space(self) -> WriteAdmission:
        """Who knows how much is free."""
        return self._admission

    def give_up(self, seconds: float, why: str) -> int:
        """As of `AckTracker`."""
        return self._acks.give_up(seconds, why)

    def allowance(self, index: int) -> BulkAllowance | None:
        """Of a partition that this shard writes; None: another one does."""
        return next((lane.allowance for lane in self._lanes if lane.index == index), None)

    def busy_seconds(self) -> float:
        """How long the oldest group in flight has been so."""
        began = [lane.submitted_at for lane in self._lanes if lane.group is not None]
        return system_clock.monotonic() - min(began) if began else 0.0

    def is_written(self) -> bool:
        """Whether nothing is pending or being written."""
        return self.is_settled() and not any(lane.partition.pending_bytes for lane in self._lanes)

    def is_settled(self) -> bool:
        """Whether nothing is being written, nor, while it is frozen, to be written."""
        return not any(lane.group is not None or (self.is_frozen and lane.is_unwritten()) for lane in self._lanes)

    def freeze(self, is_frozen: bool) -> None:
        """Write nothing that is appended from now on; or go on."""
        for lane in self._lanes:
            if is_frozen and not self.is_frozen:
                lane.frozen_lsn = lane.partition.next_lsn
        self.is_frozen = is_frozen

    def _indexed(self, _: object, fault: BaseException | None) -> None:
        if fault is not None:  # the segment itself is whole: its index is made again when it is asked for
            self._events.tell("log.failed", why=f"a segment could not be indexed: {fault}")
        self.on_indexed()

    @property
    def pending_bytes(self) -> int:
        pending = 0
        for partition in self._partitions:
            pending += partition.pending_bytes
        return pending

    def next_deadline(self) -> float:
        """When something is due that no writer is busy with, in monotonic seconds; inf: nothing is."""
        due = NEVER
        for lane in self._lanes:
            other = lane.next_deadline()
            if other < due:
                due = other
        return due

    def idle(self) -> bool:
        """Whether all is written that can be: for a partition whose disk refuses it a stop does not wait."""
        return self.is_settled() and not any(
            p.pending_bytes and index not in self._given_up and not self._admission.is_offline_elsewhere(index)
            for index, p in enumerate(self._partitions)
        )

    def unwritten(self) -> list[tuple[Partition, int]]:
        """(partition, bytes) of what its disk would not take; nobody was promised it."""
        return [(lane.partition, lane.partition.pending_bytes) for lane in self._lanes if lane.partition.pending_bytes]
