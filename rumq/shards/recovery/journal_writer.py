"""The journal of sessions on disk: facts of a turn become a record of the internal stream. docs/session-journal.md.

It is a partition like any other: group commit, faults and recovery are the log's. Now and then everything is written
down once more (a snapshot, in pieces, while the broker goes on), so that what is older can go.

Knows no packet and no client's bytes; what a fact means is `rumq.session.journal.replayed_state`'."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any

from commitlog.row_layout import ROW
from router.retained import Retained
from router.shard import Shard
from router.slots import partition_of, reader_of
from rumq.session.journal import entries as f
from rumq.session.journal.reader_positions import Marks, cursors_of, subscribed
from rumq.session.journal.recorder import JournalRecorder, left, opened, will_fact
from rumq.session.state.session import Session

TOPIC = b"_state"
TIDE_SECONDS = 1.0
PIECE_SESSIONS = 256
SNAPSHOT_BYTES_MIN = 8 << 20
UnsafeTags = dict[tuple[int, int], set[int]]  # (partition, publisher) -> packet ids


class JournalWriter:
    """Writes the facts of one shard's journal, and keeps it short."""

    def __init__(
        self, partition: Any, partitions: list[Any], journal: JournalRecorder, shard: Shard,
        session_of: Callable[[str], Session | None],
    ) -> None:  # fmt: skip
        """partition: of the internal stream; partitions: those that the vectors in facts speak of"""
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
        self._next_tide = 0.0
        self._tide_at: tuple[list[tuple[int, int, int]], int] | None = None
        self._since = self._end()  # of the last snapshot
        self._snapshot_bytes = 0
        self._snapshot: Snapshot | None = None
        self._ended_lsn: tuple[int, int] | None = None  # (begun at, ended at) of a snapshot not yet committed

    def layout(self) -> tuple[str, ...]:
        return tuple(f"{p.stream}/g{p.generation}/p{p.number}" for p in self._partitions)

    def begin(self, now_us: int) -> None:
        """The first record of a run."""
        self._append([f.Layout(self.layout())], now_us)

    # A turn

    def flush(self, now_us: int) -> None:
        """Put what happened since into one record. Nothing is written yet: the partition's group is."""
        if self._journal.waits:
            self._append(self._journal.take(self._marks(), now_us), now_us)

    def look(self, now_us: int, monotonic: float) -> None:
        """At the end of a turn: a tide, a piece of a snapshot, if it is time."""
        if monotonic >= self._next_tide:
            self._next_tide = monotonic + TIDE_SECONDS
            self._tide(now_us)
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
        marks = self._marks()
        waiting = [
            cursors_of(reader, marks)[index]
            for session in self._journal.sessions.values()
            if session.durable
            for reader in session.subscriber.readers()
            if not reader.is_live(index)
        ]
        return min(waiting, default=None)

    # Facts

    def _marks(self) -> Marks:
        return [(feed.mark(False), feed.mark(True)) for feed in self._shard.feeds]

    def _append(self, facts: list[f.AnyFact], now_us: int) -> None:
        record = f.encode_entries(facts)
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

    def _tide(self, now_us: int) -> None:
        marks = [
            (p.committed_lsn, live, committed)
            for p, (live, committed) in zip(self._partitions, self._marks(), strict=True)
            if not p.is_volatile
        ]
        if self._tide_at == (marks, self.partition.next_lsn):
            return  # nothing has happened
        self._append(self._tide_facts(now_us), now_us)
        self._tide_at = (marks, self.partition.next_lsn)

    def _tide_facts(self, now_us: int) -> list[f.AnyFact]:
        """Where everybody stands, and the inbound QoS 2 packet ids that have changed."""
        marks = self._marks()
        if not self._retained_changed():
            self.retained_from = [live for live, _ in marks]
        facts: list[f.AnyFact] = self._open_tags()
        facts.append(
            f.Checkpoint(
                now_us,
                [p.committed_lsn for p in self._partitions],
                [live for live, _ in marks],
                [committed for _, committed in marks],
                list(self.retained_from),
                self._behind(marks),
                self._shares(marks),
            )
        )
        return facts

    def _open_tags(self) -> list[f.AnyFact]:
        """The inbound QoS 2 packet ids that have changed, of messages that no crash can take back.

        One that could is not written down: its client would be told that the broker has it, and the log would not.
        """
        tagged = self._journal.tagged
        if not tagged:
            return []
        unsafe = self._unsafe_tags()
        facts: list[f.AnyFact] = []
        for number, session in list(tagged.items()):
            without = unsafe_of(session, unsafe)
            facts.append(f.Open(number, open_ids(session, without)))
            if not without:
                del tagged[number]
        return facts

    def _unsafe_tags(self) -> UnsafeTags:
        unsafe: UnsafeTags = {}
        for partition in self._partitions:
            for publisher, packet_id in partition.uncommitted_tags():
                unsafe.setdefault((partition.index, publisher), set()).add(packet_id)
        return unsafe

    def _behind(self, marks: Marks) -> dict[int, dict[int, list[int]]]:
        behind: dict[int, dict[int, list[int]]] = {}
        for session in self._journal.sessions.values():
            if session.link is None:
                continue
            for reader in session.subscriber.readers():
                if not reader.caught_up():
                    behind.setdefault(session.number, {})[reader.number] = cursors_of(reader, marks)
        return behind

    def shared(self, asked: str) -> None:
        """Another shard's client is about to rely on a share whose home is here: note how it stands. Between steps."""
        tide = self._shares(self._marks(), asked).get(asked)
        if tide is not None:
            self._journal.shared(asked, tide.cursors, tide.returned)

    def _shares(self, marks: Marks, only: str | None = None) -> dict[str, f.SharedCheckpoint]:
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
                shares[asked] = f.SharedCheckpoint(cursors_of(share.reader, marks), returned)
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
        self._append([f.Layout(self.layout()), f.SnapshotBegun()], now_us)

    def _go_on_with_snapshot(self, now_us: int) -> None:
        """One piece: some sessions as they are now, behind a tide that says what they are measured against."""
        snapshot = self._snapshot
        assert snapshot is not None
        if snapshot.sessions:
            self.flush(now_us)
            facts = self._tide_facts(now_us)
            marks, unsafe = self._marks(), self._unsafe_tags()
            for _ in range(min(PIECE_SESSIONS, len(snapshot.sessions))):
                session = self._journal.sessions.get(snapshot.sessions.popleft())
                if session is not None:
                    facts += image(session, marks, now_us, unsafe_of(session, unsafe))
            self._append(facts, now_us)
        elif some := self._shard.retained.page(snapshot.last):
            # As they are now: what has come since is also in the log, behind what the snapshot covers.
            snapshot.last = some[-1]
            self._append([retained_fact(message) for message in some], now_us)
        else:
            self._snapshot = None
            self._append([f.SnapshotEnded(snapshot.begun_lsn, snapshot.retained_from)], now_us)
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


def image(session: Session, marks: Marks, now_us: int, unsafe: set[int]) -> list[f.AnyFact]:
    """Everything about one session."""
    number = session.number
    facts: list[f.AnyFact] = [opened(session, fresh=True)]
    if session.will is not None:
        facts.append(will_fact(session))
    for asked in session.subscriber.filters():
        fact = subscribed(session, asked, marks)
        if fact is not None:
            facts.append(fact)
    window = session.window
    if window is not None and window.next:
        facts.append(f.Window(number, window.head, *window.slots(window.head, window.next)))
    facts.append(f.Open(number, open_ids(session, unsafe)))
    if session.link is None:
        facts.append(left(session, marks, now_us))
    return facts


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


def retained_fact(message: Retained) -> f.Retained:
    return f.Retained(
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
