"""The session journal: the entries of a turn become a record of the internal stream. docs/reference/session-journal.md.

The journal is a partition like any other: group commit, faults and recovery are the log's. Checkpoints bound how much a
restart replays, snapshots how much is kept."""
# compiled: hot

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from commitlog import Partition
from commitlog.log.partition_types import PartitionReader
from commitlog.row_layout import ROW
from commitlog.write.retention import SegmentRemoval
from router.shard import ShardRouter
from rumq.loop.ports import Clock, LifecycleState
from rumq.loop.stage import Stage
from rumq.session.journal import entries as e
from rumq.session.journal.reader_positions import cursors_of
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.recovery.checkpoint import CheckpointBuilder
from rumq.shards.recovery.journal_snapshot import SnapshotWriter, Standing, standing_entry

TOPIC = b"_state"
CHECKPOINT_SECONDS = 1.0


class JournalWriter(Stage):
    """Writes the entries of one shard's journal, with checkpoints and snapshots."""

    def __init__(
        self, partition: Partition, partitions: Sequence[PartitionReader], recorder: JournalRecorder,
        router: ShardRouter, session_of: Callable[[str], Session | None], clock: Clock, lifecycle: LifecycleState,
        standing: Callable[[], Iterable[Standing]] = tuple,
    ) -> None:  # fmt: skip
        """partition: of the internal stream; partitions: those that the vectors in entries refer to

        standing: as of `SnapshotWriter`"""
        self.partition, self._partitions = partition, partitions
        self.recorder, self._router = recorder, router
        self._clock, self._lifecycle = clock, lifecycle
        topic_id = partition.topic_ids.get(TOPIC)
        self._topic_id = partition.add_topic(TOPIC) if topic_id is None else topic_id
        self._checkpoints = CheckpointBuilder(partitions, recorder, router, session_of)
        self._snapshots = SnapshotWriter(
            partition, partitions, recorder, router, self._checkpoints, self._append, standing
        )
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._next_checkpoint = 0.0
        self._is_writing_snapshot = False
        self._last_checkpoint: tuple[list[tuple[int, int, int]], int] | None = None

    def layout(self) -> tuple[str, ...]:
        return tuple(f"{p.stream}/g{p.generation}/p{p.number}" for p in self._partitions)

    def begin(self, now_us: int) -> None:
        """Write the first record of a run."""
        self._append([e.Layout(self.layout())], now_us)

    def write_nothing(self, now_us: int) -> None:
        """Append a record without entries: it is about the run, not about its sessions."""
        self._append([], now_us)

    # A turn

    def flush(self, now_us: int) -> None:
        """Append the entries recorded since as one record; the partition's next group writes it."""
        if self.recorder.has_entries():
            self._append(self.recorder.drain(self._checkpoints.watermarks(), now_us), now_us)

    def end_turn(self) -> None:
        """Append what is left; a checkpoint, and a part of a snapshot, if they are due.

        Not before the sessions of an earlier run are here: a snapshot of half of them would count as all."""
        monotonic: float = self._clock.monotonic
        if not self._has_work(monotonic) or not self._lifecycle.is_restored:
            return
        if self._waiting:
            self._release()
        now_us = self._clock.now_us
        self.flush(now_us)
        if monotonic >= self._next_checkpoint:
            self._next_checkpoint = monotonic + CHECKPOINT_SECONDS
            self._checkpoint(now_us)
            if not self._is_writing_snapshot and self._snapshots.is_due(monotonic):
                self._snapshots.begin(self.layout(), now_us, monotonic)
                self._is_writing_snapshot = True
        if self._is_writing_snapshot:
            self._snapshots.write_part(now_us)
            self._is_writing_snapshot = self._snapshots.is_under_way

    def _has_work(self, now: float) -> bool:
        """Whether the end of a turn has something to do. now: monotonic seconds"""
        if self._is_writing_snapshot or now >= self._next_checkpoint:
            return True
        return self.recorder.has_entries() or bool(self._waiting)

    def _checkpoint(self, now_us: int) -> None:
        watermarks = [
            (p.committed_lsn, live, committed)
            for p, (live, committed) in zip(self._partitions, self._checkpoints.watermarks(), strict=True)
            if not p.is_volatile
        ]
        if self._last_checkpoint == (watermarks, self.partition.next_lsn):
            return  # nothing has happened
        self._append(self._checkpoints.entries(now_us), now_us)
        self._last_checkpoint = (watermarks, self.partition.next_lsn)

    def write_checkpoint(self) -> None:
        """Write one behind what was recorded, before anything is that is of another run of a partition's owner. Between
        turns: of an open packet id it must be known whether a crash could take its message back.

        Not before the sessions of an earlier run are here: their positions are of the run that the journal names."""
        if self._lifecycle.is_restored:
            self.flush(self._clock.now_us)
            self._append(self._checkpoints.entries(self._clock.now_us), self._clock.now_us)

    def _append(self, entries: list[e.JournalEntry], now_us: int) -> None:
        record = e.encode_entries(entries)
        frame = publish_frame(record)
        row = ROW.pack(self._topic_id, 0, 0, 0, len(frame) - len(record), 0, 0, 0)
        self.partition.append(bytearray(row), frame, 1, 0, now_us)

    def shared(self, key: str) -> None:
        """Record where a shared subscription stands before a client of another shard relies on it. Between steps."""
        group = self._checkpoints.shared_group(key)
        if group is not None:
            self.recorder.shared(key, group.cursors, group.returned)

    def write_standing(self, standing: Sequence[Standing], now_us: int) -> int:
        """Append what the operator orders or takes back, and values to keep. Between steps. returns: the lsn behind
        it"""
        self._append([standing_entry(self.layout(), standing)], now_us)
        return self.partition.next_lsn

    def when_committed(self, lsn: int, call: Callable[[], None]) -> None:
        """Call in a turn, once the journal is committed up to an lsn, which none before was above."""
        self._waiting.append((lsn, call))

    def _release(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.partition.committed_lsn:
            self._waiting.popleft()[1]()

    def write_moving(self, sessions: Sequence[Session], seconds: int, now_us: int) -> None:
        """Append connected sessions whole, as the next leader is to go on with them. Between steps.

        seconds: for how long it keeps them until their connections come"""
        for session in sessions:
            self.recorder.moving(session)
        self._snapshots.write_moving(sessions, seconds, now_us)

    # Retention

    def take_removal(self) -> SegmentRemoval | None:
        """The removal of segments of the journal that are not needed any more, for the I/O thread."""
        return self._snapshots.take_removal()

    def keep_lsn(self, index: int) -> int | None:
        """From where on a partition's records are needed to find the retained messages; None: from nowhere."""
        if not len(self._router.retained) and not self._checkpoints.retained_changed():
            return None
        return self._checkpoints.retained_from[index]

    def wanted_lsn(self, index: int) -> int | None:
        """The first record of a partition that a lasting session has not had; None: all have had all."""
        watermarks = self._checkpoints.watermarks()
        waiting = [
            cursors_of(reader, watermarks)[index]
            for session in self.recorder.sessions.values()
            if session.durable
            for reader in session.subscriber.readers()
            if not reader.is_live(index)
        ]
        return min(waiting, default=None)

    # A start

    def write_snapshot(self, now_us: int) -> None:
        """Append a whole snapshot at once, in the place of one that is under way."""
        self._snapshots.begin(self.layout(), now_us, self._clock.monotonic)
        while self._snapshots.is_under_way:
            self._snapshots.write_part(now_us)
        self._is_writing_snapshot = False

    def snapshot_restored(self, begun_lsn: int, size: int) -> None:
        """As of `SnapshotWriter.restored`."""
        self._snapshots.restored(begun_lsn, size)

    def retained_restored(self, from_lsns: list[int], *, as_snapshot: bool) -> None:
        """The retained messages are those of a snapshot, and of the log from these lsns on; as_snapshot: the log added
        none."""
        changes = self._router.retained.changes if as_snapshot else -1
        self._checkpoints.retained_written(list(from_lsns), changes)


def publish_frame(payload: bytes) -> bytes:
    """A PUBLISH of QoS 0, as every frame of the log is."""
    remaining = 2 + len(TOPIC) + len(payload)
    head = bytearray(b"\x30")
    while remaining >= 128:
        head.append(remaining & 127 | 128)
        remaining >>= 7
    head.append(remaining)
    return bytes(head) + len(TOPIC).to_bytes(2, "big") + TOPIC + payload
