"""What this shard publishes to a partition of another one: numbered, handed over, and kept until it is committed there.

Topics and publishers have numbers of our own here; the owner gets the names with the first record that uses them, and
anew when it comes back. Knows no socket: messages are handed to `say`."""
# compiled: hot

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import time_ns

from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.kernels import rows as kernel
from commitlog.row_layout import PUBLISHER_WORD, ROW, ROW_RETAIN, tag_publishers
from rumq.shards.bus.messages import PublishedRecords
from rumq.shards.bus.numbered_publishers import NumberedPublishers
from rumq.tracing.trace import Wire

Say = Callable[..., None]
NONE_TRACED: Wire = []


@dataclass(slots=True, eq=False)
class HandedBatch:
    """Records that were handed over together; `sequence` counts records."""

    sequence: int
    rows: bytearray
    frames: bytes
    count: int
    flags: int
    tags: bytes
    traced: Wire
    handed: bool = False  # the owner, or the one before it, was sent them

    @property
    def bytes(self) -> int:
        return len(self.rows) + len(self.frames)

    def keep_retained(self) -> None:
        """Leave out what is not retained. Of a batch without QoS 1 and 2, for tags name rows by their place."""
        rows, frames = list(ROW.iter_unpack(self.rows)), bytearray()
        self.traced = []
        frame_ends = [*(frame_at for _, frame_at, *_ in rows[1:]), len(self.frames)]
        self.rows = bytearray()
        for (topic_id, frame_at, *rest), frame_end in zip(rows, frame_ends, strict=True):
            if rest[-2] & ROW_RETAIN:  # its flags
                self.rows += ROW.pack(topic_id, len(frames), *rest)
                frames += self.frames[frame_at:frame_end]
        self.frames, self.count = bytes(frames), len(self.rows) // ROW.size


class PublishSender:
    """To whoever waits for acknowledgements it looks as a partition does: `next_lsn` counts what was handed over,
    `committed_lsn` what of it is committed."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.next_lsn = self.committed_lsn = 1
        self.pending_bytes = 0
        self.topic_ids: dict[bytes, int] = {}
        self._topics: list[bytes] = []
        self._publishers = NumberedPublishers()
        self.theirs = array("I", [0])  # our publisher number -> the owner's, 0 until it is told
        self._seen_topics = bytearray()
        self._seen_publishers = bytearray()
        self._waiting: deque[HandedBatch] = deque()
        # The owner has said that it has shown nothing that its successor does not have: `Mark.is_last`.
        self.has_shown_none = False
        self.committed_there = 0  # the owner's committed lsn, when it told of `committed_lsn`
        self._say: Say | None = None

    # Numbers

    def add_topic(self, name: bytes) -> int:
        number = self.topic_ids[name] = len(self._topics)
        self._topics.append(name)
        return number

    def add_publisher(self, client_id: str) -> int:
        number, is_new = self._publishers.hold(client_id.encode(), self.committed_lsn)
        if is_new:
            # A number that was another's: the owner is told the name with the first record.
            self.theirs.extend([0] * (number + 1 - len(self.theirs)))
            self.theirs[number] = 0
            if number < len(self._seen_publishers):
                self._seen_publishers[number] = 0
        return number

    def release_publisher(self, number: int) -> None:
        self._publishers.release(number)

    def known_publisher(self, client_id: str) -> int:
        return self._publishers.known(client_id.encode())

    def numbered(self, pairs: list[tuple[int, int]]) -> None:
        """The owner has told its numbers of our publishers."""
        for ours, theirs in pairs:
            self.theirs[ours] = theirs

    # Handing over

    def publisher_name(self, number: int) -> bytes:
        """The client id of a publisher, by our number."""
        return self._publishers.names[number]

    def append(
        self, rows: bytearray, frames: bytes, count: int, flags: int, tags: bytes, traced: Wire = NONE_TRACED
    ) -> None:
        """Hand records over, or keep them until the owner is there."""
        self.next_lsn += count
        batch = HandedBatch(self.next_lsn, rows, frames, count, flags, tags, traced)
        self._waiting.append(batch)
        self.pending_bytes += batch.bytes
        self._publishers.appended(self.next_lsn)
        if self._say is not None:
            self._hand_over(batch)

    def _hand_over(self, batch: HandedBatch) -> None:
        assert self._say is not None
        names_of = self._publishers.names
        for seen, names in ((self._seen_topics, self._topics), (self._seen_publishers, names_of)):
            if len(seen) < len(names):
                seen.extend(bytes(len(names) - len(seen) + 1024))
        topics = [(n, self._topics[n]) for n, _ in kernel.first_seen(batch.rows, 0, self._seen_topics)]
        publishers = [(n, names_of[n]) for n, _ in kernel.first_seen(batch.rows, PUBLISHER_WORD, self._seen_publishers)]
        message = PublishedRecords(
            self.index, batch.sequence, batch.count, batch.flags, topics, publishers, len(batch.rows),
            len(batch.frames), batch.traced, time_ns() // 1000 if batch.traced else 0,
        )  # fmt: skip
        self._say(message, batch.rows, batch.frames, batch.tags)
        batch.handed = True

    def attach(self, say: Say, sequence: int) -> None:
        """The owner is there, and has everything up to `sequence` in its log: hand over what follows."""
        self._say = say
        self._seen_topics, self._seen_publishers = bytearray(), bytearray()
        self.acknowledged(sequence, self.committed_there)
        if not self.has_shown_none:
            self._leave_out_shown()
        self.has_shown_none = False
        for batch in self._waiting:
            self._hand_over(batch)

    def _leave_out_shown(self) -> None:
        """Messages of QoS 0 may have been shown by the one before, which did not live to write them: they are not
        handed over again, for they are to come at most once. What is retained is: it must not be missing."""
        kept: deque[HandedBatch] = deque()
        for batch in self._waiting:
            if not batch.handed or batch.flags & FLAG_QOS:
                kept.append(batch)
                continue
            self.pending_bytes -= batch.bytes
            if batch.flags & FLAG_RETAIN:
                batch.keep_retained()
                self.pending_bytes += batch.bytes
                kept.append(batch)
                continue
            if kept:
                kept[-1].sequence = batch.sequence
            else:
                self.committed_lsn = batch.sequence
        self._waiting = kept

    def detach(self) -> None:
        """The owner is gone; what it has not acknowledged is kept. The next one may number publishers otherwise."""
        self._say = None
        self.theirs = array("I", bytes(4 * len(self.theirs)))

    def owner_stopped(self, has_shown_none: bool) -> None:
        """The owner has said so, or that it goes on. One that is met and was handed nothing yet has nothing to say."""
        if self._say is not None:
            self.has_shown_none = has_shown_none

    def acknowledged(self, sequence: int, committed_there: int) -> bool:
        """Everything up to `sequence` is committed; returns whether that is news."""
        # Before the owner has said how much of ours its log has, that may be more than `sequence`.
        if self._say is not None and committed_there > self.committed_there:
            self.committed_there = committed_there
        if sequence <= self.committed_lsn:
            return False
        self.committed_lsn = sequence
        while self._waiting and self._waiting[0].sequence <= sequence:
            self.pending_bytes -= self._waiting.popleft().bytes
        return True

    def uncommitted_tags(self) -> Iterator[tuple[int, int]]:
        """(publisher number, packet id) of every inbound QoS 2 message that is not committed yet."""
        for batch in self._waiting:
            if batch.tags:
                for _, publisher, packet_id in tag_publishers(batch.rows, batch.tags):
                    yield publisher, packet_id & 0xFFFF
