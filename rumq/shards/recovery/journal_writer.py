"""The session journal on disk: the entries of a turn become a record of the internal stream. docs/session-journal.md.

It is a partition like any other: group commit, faults and recovery are the log's. Now and then everything is written
down once more (a snapshot, in pieces, while the broker goes on), so that what is older can go.

Replay is `rumq.session.journal.replayed_state`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any

from commitlog.row_layout import ROW
from router.retained import Retained
from router.shard import Shard
from router.slots import partition_of, reader_of
from rumq.session.journal import entries as e
from rumq.session.journal.reader_positions import Watermarks, cursors_of, subscribed_entry
from rumq.session.journal.recorder import JournalRecorder, left_entry, opened_entry, will_entry
from rumq.session.state.session import Session

TOPIC = b"_state"
CHECKPOINT_SECONDS = 1.0
PIECE_SESSIONS = 256
SNAPSHOT_BYTES_MIN = 8 << 20
UnsafeTags = dict[tuple[int, int], set[int]]  # (partition, publisher) -> packet ids


class JournalWriter:
    """Writes the entries of one shard's journal, checkpoints and snapshots."""

    def __init__(
        self, partition: Any, partitions: list[Any], journal: JournalRecorder, shard: Shard,
        session_of: Callable[[str], Session | None],
    ) -> None:  # fmt: skip
        """partition: of the internal stream; partitions: those of the vectors in entries"""
        self._session_of = session_of
        self.partition = partition
        self._partitions = partitions
        self._journal = journal
        self._shard = shard
        self._topic_id = partition.topic_ids.get(TOPIC)
        if self._topic_id is None:
            self._topic_id = partition.add_topic(TOPIC)
        self.retained_from = [0] * len(partitions)  # retained messages below are in a snapshot
        self._retained_changes = 0  # of the view, when `retained_from` was true
        self._next_checkpoint = 0.0
        self._checkpoint_at: tuple[list[tuple[int, int, int]], int] | None = None
        self._since = self._end()  # of the last snapshot
        self._snapshot_bytes = 0
        self._snapshot: Snapshot | None = None
        self._ended_lsn: tuple[int, int] | None = None  # (begun at, ended at) of a snapshot not yet committed

    def layout(self) -> tuple[str, ...]:
        return tuple(f"{p.stream}/g{p.generation}/p{p.number}" for p in self._partitions)

    def begin(self, now_us: int) -> None:
        """The first record of a run."""
        self._append([e.Layout(self.layout())], now_us)

    # A turn

    def flush(self, now_us: int) -> None:
        """Put what happened since into one record. Nothing is written yet: the partition's group is."""
        if self._journal.pending:
            self._append(self._journal.drain(self._watermarks(), now_us), now_us)

    def look(self, now_us: int, monotonic: float) -> None:
        """At the end of a turn: write a checkpoint or a piece of a snapshot when it is due."""
        if monotonic >= self._next_checkpoint:
            self._next_checkpoint = monotonic + CHECKPOINT_SECONDS
            self._checkpoint(now_us)
            if self._snapshot is None and self._must_snapshot():
                self._begin_snapshot(now_us)
        if self._snapshot is not None:
            self._go_on_with_snapshot(now_us)

    def take_removal(self) -> Any | None:
        """What of the journal is not needed any more, for the I/O thread."""
        if self._ended_lsn is None or self.partition.committed_lsn < self._ended_lsn[1]:
            return None
        return self.partition.take_removal(self._ended_lsn[0])

    def keep_lsn(self, index: int) -> int | None:
        """From where on a partition's records are needed to find the retained messages; None: from nowhere."""
        if not len(self._shard.retained) and not self._retained_changed():
            return None
        return self.retained_from[index]

    def wanted_lsn(self, index: int) -> int | None:
        """The first record of a partition that a lasting session has not had; None: all have had all."""
        watermarks = self._watermarks()
        waiting = [
            cursors_of(reader, watermarks)[index]
            for session in self._journal.sessions.values()
            if session.durable
            for reader in session.subscriber.readers()
            if not reader.is_live(index)
        ]
        return min(waiting, default=None)

    # Entries

    def _watermarks(self) -> Watermarks:
        return [(feed.mark(False), feed.mark(True)) for feed in self._shard.feeds]

    def _append(self, entries: list[e.JournalEntry], now_us: int) -> None:
        record = e.encode_entries(entries)
        frame = publish_frame(record)
        row = ROW.pack(self._topic_id, 0, 0, 0, len(frame) - len(record), 0, 0, 0)
        self.partition.append(bytearray(row), frame, 1, 0, now_us)

    def _end(self) -> tuple[int, int]:
        """Where the journal ends: (base lsn of the last segment, bytes in it and on their way to it)."""
        files, waiting = self.partition.segments.files, self.partition.pending_bytes
        return (files[-1].base_lsn, files[-1].bytes + waiting) if files else (-1, waiting)

    def _bytes_on_disk(self) -> int:
        """Of the journal since the last snapshot: much more than its records, for each group has pages of its own."""
        base_lsn, before = self._since
        files, waiting = self.partition.segments.files, self.partition.pending_bytes
        after = sum(segment.bytes for segment in files if segment.base_lsn >= base_lsn)
        return int(after + waiting - before)

    def _checkpoint(self, now_us: int) -> None:
        watermarks = [
            (p.committed_lsn, live, committed)
            for p, (live, committed) in zip(self._partitions, self._watermarks(), strict=True)
            if not p.is_volatile
        ]
        if self._checkpoint_at == (watermarks, self.partition.next_lsn):
            return  # nothing has happened
        self._append(self._checkpoint_entries(now_us), now_us)
        self._checkpoint_at = (watermarks, self.partition.next_lsn)

    def _checkpoint_entries(self, now_us: int) -> list[e.JournalEntry]:
        """Where everybody stands, and the inbound QoS 2 packet ids that have changed."""
        watermarks = self._watermarks()
        if not self._retained_changed():
            self.retained_from = [live for live, _ in watermarks]
        entries: list[e.JournalEntry] = self._open_tags()
        entries.append(
            e.Checkpoint(
                now_us,
                [p.committed_lsn for p in self._partitions],
                [live for live, _ in watermarks],
                [committed for _, committed in watermarks],
                list(self.retained_from),
                self._behind(watermarks),
                self._shares(watermarks),
            )
        )
        return entries

    def _open_tags(self) -> list[e.JournalEntry]:
        """The inbound QoS 2 packet ids that have changed, of messages that no crash can take back.

        One that could is not written down: its client would be told that the broker has it, and the log would not.
        """
        tagged = self._journal.qos2_changed
        if not tagged:
            return []
        unsafe = self._unsafe_tags()
        entries: list[e.JournalEntry] = []
        for number, session in list(tagged.items()):
            without = unsafe_of(session, unsafe)
            entries.append(e.Open(number, open_ids(session, without)))
            if not without:
                del tagged[number]
        return entries

    def _unsafe_tags(self) -> UnsafeTags:
        unsafe: UnsafeTags = {}
        for partition in self._partitions:
            for publisher, packet_id in partition.uncommitted_tags():
                unsafe.setdefault((partition.index, publisher), set()).add(packet_id)
        return unsafe

    def _behind(self, watermarks: Watermarks) -> dict[int, dict[int, list[int]]]:
        behind: dict[int, dict[int, list[int]]] = {}
        for session in self._journal.sessions.values():
            if session.link is None:
                continue
            for reader in session.subscriber.readers():
                if not reader.caught_up():
                    behind.setdefault(session.number, {})[reader.number] = cursors_of(reader, watermarks)
        return behind

    def shared(self, asked: str) -> None:
        """Another shard's client is about to rely on a share whose home is here: note how it stands. Between steps."""
        checkpoint = self._shares(self._watermarks(), asked).get(asked)
        if checkpoint is not None:
            self._journal.shared(asked, checkpoint.cursors, checkpoint.returned)

    def _shares(self, watermarks: Watermarks, only: str | None = None) -> dict[str, e.SharedCheckpoint]:
        shares = {}
        for asked, share in self._shard.sharing.shares.items():
            if not share.is_here or (only is not None and asked != only):
                continue
            returned = list(share.returned)
            durable = 0
            for subscriber, member in share.members.items():
                if subscriber.is_shard:
                    durable += 1
                    returned += member.outstanding
                    continue
                session = self._session_of(subscriber.key)
                if session is not None and session.durable:
                    durable += 1
                elif session is not None and session.window is not None:
                    # Its session ends with the broker: what it has not acknowledged goes to another member.
                    returned += [
                        (partition_of(code), lsn, lsn + 1)
                        for _, state, code, lsn in session.window.waiting()
                        if state == 1 and reader_of(code) == member.reader.number
                    ]
            if durable:
                shares[asked] = e.SharedCheckpoint(cursors_of(share.reader, watermarks), returned)
        return shares

    # Snapshots

    def _retained_changed(self) -> bool:
        return self._shard.retained.changes != self._retained_changes

    def _must_snapshot(self) -> bool:
        least = min(SNAPSHOT_BYTES_MIN, self.partition.spec.segment_bytes_max // 2)
        if self._bytes_on_disk() > max(least, 2 * self._snapshot_bytes):
            return True
        return self._retained_changed() and any(
            p.segments.files and p.segments.active.base_lsn > kept
            for p, kept in zip(self._partitions, self.retained_from, strict=True)
            if not (p.is_mirrored or p.is_volatile)
        )

    def _begin_snapshot(self, now_us: int) -> None:
        self._snapshot = Snapshot(
            self.partition.next_lsn,
            [feed.live_mark for feed in self._shard.feeds],
            self._shard.retained.changes,
            deque(self._journal.sessions),
        )
        self._since = self._end()
        self._append([e.Layout(self.layout()), e.SnapshotBegun()], now_us)

    def _go_on_with_snapshot(self, now_us: int) -> None:
        """Write one snapshot part, preceded by the checkpoint that its cursors refer to."""
        snapshot = self._snapshot
        assert snapshot is not None
        if snapshot.sessions:
            self.flush(now_us)
            entries = self._checkpoint_entries(now_us)
            watermarks, unsafe = self._watermarks(), self._unsafe_tags()
            for _ in range(min(PIECE_SESSIONS, len(snapshot.sessions))):
                session = self._journal.sessions.get(snapshot.sessions.popleft())
                if session is not None:
                    entries += session_entries(session, watermarks, now_us, unsafe_of(session, unsafe))
            self._append(entries, now_us)
        elif some := self._shard.retained.page(snapshot.last):
            # As they are now: what has come since is also in the log, behind what the snapshot covers.
            snapshot.last = some[-1]
            self._append([retained_entry(message) for message in some], now_us)
        else:
            self._snapshot = None
            self._append([e.SnapshotEnded(snapshot.begun_lsn, snapshot.retained_from)], now_us)
            self._ended_lsn = (snapshot.begun_lsn, self.partition.next_lsn)
            self._snapshot_bytes = self._bytes_on_disk()
            self.retained_from = snapshot.retained_from
            self._retained_changes = snapshot.retained_changes

    def snapshot_now(self, now_us: int) -> None:
        """Write everything down at once, as at a start."""
        self._begin_snapshot(now_us)
        while self._snapshot is not None:
            self._go_on_with_snapshot(now_us)

    def retained_known(self, from_lsns: list[int], *, as_snapshot: bool) -> None:
        """At a start: the view is a snapshot and what the log has from `from_lsns` on. as_snapshot: that is nothing."""
        self.retained_from = list(from_lsns)
        self._retained_changes = self._shard.retained.changes if as_snapshot else -1


class Snapshot:
    """What of a snapshot is still to be written."""

    def __init__(
        self, begun_lsn: int, retained_from: list[int], retained_changes: int, sessions: deque[int]
    ) -> None:
        self.begun_lsn = begun_lsn
        self.retained_from, self.retained_changes = retained_from, retained_changes
        self.sessions = sessions
        self.last: Retained | None = None  # of the retained messages written down so far


def unsafe_of(session: Session, unsafe: UnsafeTags) -> set[int]:
    """The packet ids of a session's inbound QoS 2 messages that a crash could take back."""
    found: set[int] = set()
    if unsafe:
        for index, publisher in enumerate(session.publishers or ()):
            found |= unsafe.get((index, publisher), set())
    return found


def session_entries(
    session: Session, watermarks: Watermarks, now_us: int, unsafe: set[int]
) -> list[e.JournalEntry]:
    """Everything about one session."""
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
        entries.append(e.Window(number, window.head, *window.slots(window.head, window.next)))
    entries.append(e.Open(number, open_ids(session, unsafe)))
    if session.link is None:
        entries.append(left_entry(session, watermarks, now_us))
    return entries


def open_ids(session: Session, without: Container[int] = ()) -> bytes:
    """The inbound QoS 2 packet ids that wait for PUBREL, u16 each."""
    link = session.link
    bits = link.wire.qos2_open if link is not None and link.wire is not None else session.qos2_open
    if bits is None:
        return b""
    return b"".join(
        (8 * at + bit).to_bytes(2, "little")
        for at, byte in enumerate(bits)
        if byte
        for bit in range(8)
        if byte >> bit & 1 and 8 * at + bit not in without
    )


def retained_entry(message: Retained) -> e.Retained:
    return e.Retained(
        message.partition, message.lsn, message.base_ts, message.topic, message.row, message.frame
    )


def publish_frame(payload: bytes) -> bytes:
    """A PUBLISH of QoS 0, as every frame of the log is."""
    remaining = 2 + len(TOPIC) + len(payload)
    head = bytearray(b"\x30")
    while remaining >= 128:
        head.append(remaining & 127 | 128)
        remaining >>= 7
    head.append(remaining)
    return bytes(head) + len(TOPIC).to_bytes(2, "big") + TOPIC + payload
