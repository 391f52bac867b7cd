"""Snapshots of the session journal: everything is written once more, in parts, so that older records may go.

The broker serves clients between the parts. When one is due: docs/decisions/0070-a-small-journal.md.
docs/reference/session-journal.md."""
# compiled: warm

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from commitlog import Partition
from commitlog.log.partition_types import PartitionReader
from commitlog.write.retention import SegmentRemoval
from router.matching.retained import RetainedRecord
from router.shard import ShardRouter
from rumq.session.journal import entries as e
from rumq.session.journal.reader_positions import Watermarks, subscribed_entry
from rumq.session.journal.recorder import JournalRecorder, left_entry, opened_entry, will_entry
from rumq.session.state.session import Session
from rumq.shards.recovery.checkpoint import CheckpointBuilder, open_entry, unsafe_packet_ids

PART_SESSIONS = 256
PART_ORDERS = 256  # and kept values
# Of the disk, with all padding: a journal that has grown by less is left alone. A little below 1.4 MiB, where the zeros
# ahead of a segment (`commitlog.disk.preallocation`) would grow from 1.6 to 2.6 MiB just before it ends.
GROWTH_BYTES_MIN = 5 << 18
# One that grows fast is left alone for longer: each snapshot costs the syncs of another segment.
SNAPSHOT_SECONDS_MIN = 10.0
FAST_GROWTH_BYTES = 8 << 20  # not so long that a start had to read more than this

Standing = e.StandingOrder | e.KeptValue


class OpenSnapshot:
    """A snapshot under way. sessions: numbers of those still to be written; standing: orders and kept values, each as
    it is when it is taken"""

    def __init__(
        self, begun_lsn: int, layout: tuple[str, ...], retained_from: list[int], retained_changes: int,
        sessions: deque[int], standing: Iterator[Standing],
    ) -> None:  # fmt: skip
        self.begun_lsn, self.layout = begun_lsn, layout
        self.retained_from, self.retained_changes = retained_from, retained_changes
        self.sessions, self.standing = sessions, standing
        self.last: RetainedRecord | None = None  # of the retained messages written so far


class SnapshotWriter:
    """Decides when a snapshot is due, and writes it."""

    def __init__(
        self, journal: Partition, partitions: Sequence[PartitionReader], recorder: JournalRecorder, router: ShardRouter,
        checkpoints: CheckpointBuilder, append: Callable[[list[e.JournalEntry], int], None],
        standing: Callable[[], Iterable[Standing]] = tuple,
    ) -> None:  # fmt: skip
        """append: writes entries as one record of the journal, at a time in µs

        standing: orders of the operator that are in force, and kept values, each as it is when it is taken, which may
        be turns later"""
        self._journal, self._partitions, self._recorder = journal, partitions, recorder
        self._router, self._checkpoints, self._append = router, checkpoints, append
        self._standing = standing
        self._since = self._end()  # where the last snapshot begins
        self._bytes = 0  # of the last snapshot
        self._not_before = 0.0  # monotonic seconds: of the next snapshot, unless the journal grows fast
        self._snapshot: OpenSnapshot | None = None
        self._ended_lsn: tuple[int, int] | None = None  # (begun at, ended at) of a snapshot not yet committed

    @property
    def is_under_way(self) -> bool:
        return self._snapshot is not None

    def restored(self, begun_lsn: int, size: int) -> None:
        """The journal was read: its last whole snapshot begins at an lsn, and takes about so many bytes; 0: none.

        What is behind it counts as in one run, so that runs that end soon leave no more than long ones. And what is
        before it may go, if the last run did not come to that."""
        files = self._journal.segments.files
        base_lsn = max((segment.base_lsn for segment in files if segment.base_lsn <= begun_lsn), default=-1)
        self._since, self._bytes = (base_lsn, 0, 0), size
        if begun_lsn:
            self._ended_lsn = (begun_lsn, self._journal.next_lsn)

    def is_due(self, monotonic: float) -> bool:
        """Whether the journal has grown enough, or retained messages hold back a finished segment.

        By as much as the last snapshot takes: all snapshots together write no more than the journal does without
        them."""
        half = self._journal.spec.segment_bytes_max // 2
        growth = self._bytes_on_disk()
        least = GROWTH_BYTES_MIN if monotonic >= self._not_before else FAST_GROWTH_BYTES
        if growth > max(min(least, half), 2 * self._bytes):  # with the last snapshot, which is the first half
            return True
        return self._checkpoints.retained_changed() and any(
            p.segments.files and p.segments.active.base_lsn > kept
            for p, kept in zip(self._partitions, self._checkpoints.retained_from, strict=True)
            if isinstance(p, Partition)
        )

    def begin(self, layout: tuple[str, ...], now_us: int, monotonic: float) -> None:
        """Begin one in a segment of its own: what is before it goes as soon as it is committed."""
        self._not_before = monotonic + SNAPSHOT_SECONDS_MIN
        self._snapshot = OpenSnapshot(
            self._journal.next_lsn,
            layout,
            [feed.visible_lsn for feed in self._router.feeds],
            self._router.retained.changes,
            deque(self._recorder.sessions),
            iter(self._standing()),
        )
        self._since = self._end()
        # What is before may be removed, and later checkpoints name only the shared groups that have moved.
        pending = self._recorder.drain(self._checkpoints.watermarks(), now_us)
        checkpoint = self._checkpoints.entries(now_us, whole=True)
        head = e.Layout(layout, last_number=self._recorder.last_number)
        self._append([head, e.SnapshotBegun(), *pending, *checkpoint], now_us)
        group = self._journal.take_roll(now_us)
        assert group is None, "records are pending: the next group, which has them, goes to another segment"

    def write_part(self, now_us: int) -> None:
        """Write one part: some of what stands; or some sessions, preceded by the checkpoint that their cursors refer
        to; or some retained messages; or the end."""
        snapshot = self._snapshot
        assert snapshot is not None
        if standing := tuple(islice(snapshot.standing, PART_ORDERS)):
            self._append([standing_entry(snapshot.layout, standing)], now_us)
        elif snapshot.sessions:
            self._append_sessions(snapshot, now_us)
        elif some := self._router.retained.page(snapshot.last):
            # As they are now: what came meanwhile is also in the log, above the lsns that the snapshot covers.
            snapshot.last = some[-1]
            self._append([retained_entry(message) for message in some], now_us)
        else:
            self._snapshot = None
            self._append([e.SnapshotEnded(snapshot.begun_lsn, snapshot.retained_from)], now_us)
            self._ended_lsn = (snapshot.begun_lsn, self._journal.next_lsn)
            self._bytes = self._bytes_on_disk()
            self._checkpoints.retained_written(snapshot.retained_from, snapshot.retained_changes)

    def write_moving(self, sessions: Sequence[Session], seconds: int, now_us: int) -> None:
        """Append sessions whose connections go to the next leader, in parts. seconds: as of `entries.Left`"""
        for at in range(0, len(sessions), PART_SESSIONS):
            checkpoints = self._checkpoints
            self._append_pending(now_us)
            entries = checkpoints.entries(now_us, whole=at == 0)  # all sessions are lasting now
            watermarks, unsafe = checkpoints.watermarks(), checkpoints.unsafe_tags()
            for session in sessions[at : at + PART_SESSIONS]:
                entries += session_entries(
                    self._recorder, session, watermarks, now_us, unsafe_packet_ids(session, unsafe)
                )
                entries.append(left_entry(session, watermarks, now_us, moving_seconds=seconds))
            self._append(entries, now_us)

    def _append_sessions(self, snapshot: OpenSnapshot, now_us: int) -> None:
        checkpoints = self._checkpoints
        self._append_pending(now_us)
        entries = checkpoints.entries(now_us)
        watermarks, unsafe = checkpoints.watermarks(), checkpoints.unsafe_tags()
        for _ in range(min(PART_SESSIONS, len(snapshot.sessions))):
            session = self._recorder.sessions.get(snapshot.sessions.popleft())
            if session is not None:
                entries += session_entries(
                    self._recorder, session, watermarks, now_us, unsafe_packet_ids(session, unsafe)
                )
        self._append(entries, now_us)

    def _append_pending(self, now_us: int) -> None:
        """The entries recorded so far: the checkpoint that follows is about what is after them."""
        if self._recorder.has_entries():
            self._append(self._recorder.drain(self._checkpoints.watermarks(), now_us), now_us)

    def take_removal(self) -> SegmentRemoval | None:
        """The removal of segments before the last committed snapshot, for the I/O thread."""
        if self._ended_lsn is None or self._journal.committed_lsn < self._ended_lsn[1]:
            return None
        return self._journal.take_removal(self._ended_lsn[0])

    def _end(self) -> tuple[int, int, int]:
        """Where the journal ends: (base lsn of the last segment, bytes in it, bytes on their way to a segment)."""
        files, waiting = self._journal.segments.files, self._journal.pending_bytes
        return (files[-1].base_lsn, files[-1].bytes, waiting) if files else (-1, 0, waiting)

    def _bytes_on_disk(self) -> int:
        """Of the journal since the last snapshot began: much more than its records, for each group has pages of its
        own."""
        base_lsn, before, waiting_before = self._since
        after = self._journal.pending_bytes - waiting_before
        for segment in self._journal.segments.files:
            if segment.base_lsn > base_lsn:
                after += segment.bytes
            elif segment.base_lsn == base_lsn:  # while it is there: it goes once the snapshot is committed
                after += segment.bytes - before
        return after


def standing_entry(layout: tuple[str, ...], standing: Iterable[Standing]) -> e.Layout:
    orders: list[e.StandingOrder] = []
    kept: list[e.KeptValue] = []
    for each in standing:
        if isinstance(each, e.KeptValue):
            kept.append(each)
        else:
            orders.append(each)
    return e.Layout(layout, tuple(orders), kept=tuple(kept))


def session_entries(
    recorder: JournalRecorder, session: Session, watermarks: Watermarks, now_us: int, unsafe: set[int]
) -> list[e.JournalEntry]:
    """One session, whole. unsafe: inbound packet ids to leave out"""
    number = session.number
    entries: list[e.JournalEntry] = [opened_entry(session, fresh=True)]
    if session.will is not None:
        entries.append(will_entry(session))
    for asked in session.subscriber.filters():
        entry = subscribed_entry(session, asked, watermarks)
        if entry is not None:
            entries.append(entry)
    window = session.window
    if window is not None and window.next:
        entries.append(e.WindowEntry(number, window.head, *window.slots(window.head, window.next)))
    entries.append(open_entry(recorder, session, unsafe))
    if session.link is None:
        entries.append(left_entry(session, watermarks, now_us))
    return entries


def retained_entry(message: RetainedRecord) -> e.RetainedEntry:
    return e.RetainedEntry(message.partition, message.lsn, message.base_ts, message.topic, message.row, message.frame)
