"""The files of an outbox: a commit log of what is to be published, and one of how far that has come.

Both are partitions of `commitlog`, in the format of docs/reference/log-format.md: checksummed segments, a torn tail is
cut, damage is a gap. A message's place is its lsn. Knows no connection; the time is an argument."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, NamedTuple

from commitlog import DirectoryInUse, Files, Gap, LogFailure, NotInMemory, Partition, Store, StoreError, StreamSpec
from commitlog import open_store as open_commit_log
from commitlog.chunk import FLAG_EXPIRY, FLAG_QOS, FLAG_RETAIN, FLAG_V5, Chunk
from commitlog.log.store_layout import OpenOptions, StoreLayout
from commitlog.read.cold_reads import ColdReadTask
from commitlog.row_layout import (
    FRAME_WORD,
    PAYLOAD_WORD,
    ROW,
    ROW_EMPTY,
    ROW_EXPIRY,
    ROW_PROPERTIES,
    ROW_RETAIN,
    ROW_V5,
    ROW_WORDS,
)
from commitlog.write.write_group import WriteGroup
from rumq.client.outbox.outbox_errors import OutboxError, OutboxFailed, OutboxFull, OutboxInUse
from rumq.client.session.messages import Outgoing
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish

MESSAGES, PROGRESS = "outbox", "_progress"
SEGMENTS = 16  # so many of them make the largest size
SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX = 1 << 16, 1 << 26
PROGRESS_SEGMENT_BYTES = 1 << 18
HOT_BYTES_MAX = 4 << 20  # of messages, kept in memory for a connection that is up
GROUP_BYTES = 8192  # what a group may take beside its messages: header, names, padding
READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class OutboxProgress:
    """How far an outbox has come, as its file has it.

    client_id: of the session that the packet ids belong to
    stored: the broker has every message below this place, or it was given up
    release: packet ids of messages from this place on, below `stored`, may wait for PUBREL
    dropped, refused, expired, damaged: messages that were given up, since the outbox was made
    """

    client_id: str = ""
    stored: int = 0
    release: int = 0
    dropped: int = 0
    refused: int = 0
    expired: int = 0
    damaged: int = 0


class StoredMessage(NamedTuple):
    """place: its lsn; frame: a PUBLISH of MQTT 5 and QoS 2, without RETAIN; time_us: when it was stored"""

    place: int
    frame: bytes
    is_retained: bool
    expires: bool
    time_us: int


class Writing(NamedTuple):
    """A group on its way to the disk, and where it belongs."""

    partition: Partition
    group: WriteGroup


class OutboxLog:
    """An outbox on disk, of one process. Appending is a call; what waits for a disk is a group with a `run`."""

    def __init__(self, files: Files, path: str, bytes_max: int, *, syncs: bool, now_us: Callable[[], int]) -> None:
        """syncs: what is kept survives a power loss, not only the end of this process

        raises: OutboxInUse, OutboxError"""
        self._files, self.path, self.bytes_max = files, path, bytes_max
        self._syncs, self._now_us = syncs, now_us
        self._lock: int | None = None
        self._is_broken = False  # the disk has failed: memory has what it has not
        self._open()
        self.progress = self._read_progress()

    def _open(self) -> None:
        segment_bytes = min(max(self.bytes_max // SEGMENTS, SEGMENT_BYTES_MIN), SEGMENT_BYTES_MAX)
        durability: Literal["disk", "process"] = "disk" if self._syncs else "process"
        try:
            self._store: Store = open_commit_log(
                self._files,
                self.path,
                StoreLayout(
                    [StreamSpec(MESSAGES, ("#",), 1, durability, segment_bytes)],
                    lambda topic_filter, topic: True,
                    internal=StreamSpec(PROGRESS, ("#",), 1, durability, PROGRESS_SEGMENT_BYTES),
                ),
                OpenOptions(self._now_us(), hot_bytes_max=HOT_BYTES_MAX, direct_bytes_min=1 << 30),
                holder=f"pid {os.getpid()}\n",
                lock=self._lock,
            )
        except DirectoryInUse as fault:
            held = fault.problem.partition(":")[0].replace("another broker", "another process")
            raise OutboxInUse(self.path, f"{held}: each process needs one of its own") from None
        except StoreError as fault:
            raise OutboxError(self.path, fault.problem) from fault
        self._lock = self._store._lock

    @property
    def _messages(self) -> Partition:
        return self._store.own[0]

    @property
    def _marks(self) -> Partition:
        assert self._store.internal is not None
        return self._store.internal

    # --- what there is

    @property
    def first_place(self) -> int:
        return self._messages.first_lsn

    @property
    def next_place(self) -> int:
        """Behind the last message."""
        return self._messages.next_lsn

    @property
    def kept_place(self) -> int:
        """Everything below survives what it should survive."""
        return self._messages.committed_lsn

    @property
    def kept_progress(self) -> bool:
        """Whether the last progress is on disk."""
        return self._marks.committed_lsn == self._marks.next_lsn

    @property
    def bytes(self) -> int:
        """Of the disk, with what is about to be written to it."""
        return self._messages.segments.bytes + self._marks.segments.bytes + self._messages.pending_bytes

    # --- writing

    def append(self, messages: Sequence[Outgoing]) -> int:
        """Append messages, in memory until `take_groups` has run; returns the place behind them.

        raises: OutboxFull, OutboxFailed, and then nothing is appended; ValueError for one that MQTT cannot say"""
        self._repair()
        frames = [as_frame(message) for message in messages]
        size = sum(map(len, frames)) + 32 * len(frames) + GROUP_BYTES
        if self.bytes + size > self.bytes_max:
            seen = f"it has {self.bytes} bytes, these {len(frames)} messages need {size}, the limit is {self.bytes_max}"
            raise OutboxFull(self.path, f"{seen}: wait for the broker, raise bytes_max, or let it drop the oldest")
        rows, data, flags = bytearray(), bytearray(), FLAG_QOS | FLAG_V5
        for message, frame in zip(messages, frames, strict=True):
            row_flags = 2 | ROW_V5
            if message.retain:
                row_flags, flags = row_flags | ROW_RETAIN, flags | FLAG_RETAIN
            if message.properties:
                row_flags |= ROW_PROPERTIES
                if "message_expiry_interval" in message.properties:
                    row_flags, flags = row_flags | ROW_EXPIRY, flags | FLAG_EXPIRY
            if not message.payload:
                row_flags |= ROW_EMPTY
            rows += ROW.pack(
                self._topic(message.topic), len(data), 0, 0, len(frame) - len(message.payload), 0, row_flags, 0
            )
            data += frame
        return self._messages.append(rows, bytes(data), len(frames), flags, self._now_us()).next_lsn

    def _topic(self, topic: str) -> int:
        number = self._messages.topic_ids.get(topic.encode())
        return self._messages.add_topic(topic.encode()) if number is None else number

    def mark(self, progress: OutboxProgress) -> None:
        """Note progress, in memory until `take_groups` has run. raises: OutboxFailed"""
        self._repair()
        self.progress = progress
        record = json.dumps({"v": 1, **asdict(progress)}).encode()
        frame = encode(Publish(PROGRESS, record), 4)
        number = self._marks.topic_ids.get(PROGRESS.encode())
        number = self._marks.add_topic(PROGRESS.encode()) if number is None else number
        row = ROW.pack(number, 0, 0, 0, len(frame) - len(record), 0, 0, 0)
        self._marks.append(bytearray(row), frame, 1, 0, self._now_us())

    def take_groups(self) -> list[Writing]:
        """What is to be written, by `run_groups` in any thread; then `complete`."""
        if self._is_broken:
            return []
        both = (self._messages, self._marks)
        return [Writing(each, group) for each in both if (group := each.take_group()) is not None]

    def complete(self, writings: Sequence[Writing]) -> None:
        """raises: OutboxFailed; what was not on disk is lost then, and the next call that appends begins anew"""
        failure: LogFailure | None = None
        for partition, group in writings:
            partition.complete(group)
            failure = failure or partition.offline
        if failure is not None:
            self._is_broken = True
            problem = failure.problem.partition(";")[0]
            raise OutboxFailed(self.path, f"{problem}: what was not on disk before is not kept")

    def write(self) -> None:
        """Have everything written, in this thread. raises: OutboxFailed"""
        while groups := self.take_groups():
            run_groups(groups)
            self.complete(groups)

    def reopen(self) -> None:
        """As after a crash: what the disk has counts. raises: OutboxError"""
        for partition in (self._messages, self._marks):
            partition.writer.close()
        self._open()
        self.progress = self._read_progress()
        self._is_broken = False

    def _repair(self) -> None:
        """Behind a failure of the disk: begin anew with what it has. raises: OutboxFailed where it still fails"""
        if self._is_broken:
            counted = self.progress
            try:
                self.reopen()
            except OutboxError as fault:
                raise OutboxFailed(self.path, fault.problem) from fault
            counts = ("dropped", "refused", "expired", "damaged")
            self.progress = replace(self.progress, **{name: getattr(counted, name) for name in counts})

    def close(self) -> None:
        if self._is_broken:
            for partition in (self._messages, self._marks):
                partition.writer.close()
            assert self._lock is not None
            self._files.close(self._lock)
        else:
            self._store.close()

    # --- reading

    def maybe_read(self, place: int) -> list[StoredMessage | Gap] | None:
        """Messages from a place on that are in memory, some at a time; [] at the end, None: `cold_read` has them"""
        if place >= self._messages.committed_lsn:
            return []
        try:
            return self.parsed(self._messages.read(place, READ_BYTES), place)
        except NotInMemory:
            return None

    def cold_read(self, place: int) -> ColdReadTask:
        """A read from disk, for any thread; `parsed` takes what its `run` gives."""
        return self._messages.cold_read(place, READ_BYTES)

    def parsed(self, pieces: Sequence[Chunk | Gap], place: int) -> list[StoredMessage | Gap]:
        """What is kept of these from a place on. A gap is damage."""
        end = self._messages.committed_lsn
        found: list[StoredMessage | Gap] = []
        for piece in pieces:
            if isinstance(piece, Gap):
                found.append(Gap(max(piece.base_lsn, place), min(piece.next_lsn, end), piece.why))
            else:
                found += [each for each in messages_in(piece) if place <= each.place < end]
        return found

    def read(self, place: int) -> list[StoredMessage | Gap]:
        """The same in this thread. raises: OSError"""
        found = self.maybe_read(place)
        return self.parsed(self.cold_read(place).run(), place) if found is None else found

    def _read_progress(self) -> OutboxProgress:
        """The last one; raises: OutboxError where it is of a later version"""
        found = OutboxProgress()
        for chunk in self._store.chunks_with(self._marks, 0):
            if isinstance(chunk, Gap):
                continue
            for payload in payloads_in(chunk):
                found = parse_progress(self.path, payload)
        return found

    # --- removing

    def trim(self) -> None:
        """Remove segments whose messages are all below `progress.stored`. May wait for a disk."""
        for partition, below in ((self._messages, self.progress.stored), (self._marks, self._marks.committed_lsn - 1)):
            while (job := partition.take_seal_job()) is not None:
                job.run()
            removal = partition.take_removal(below)
            if removal is not None:
                removal.run()
                partition.removed(removal)

    def end_segment(self) -> None:
        """End the segment that is written to, so that it can be removed. May wait for a disk."""
        group = self._messages.take_roll(self._now_us())
        if group is not None:
            groups = [Writing(self._messages, group)]
            run_groups(groups)
            self.complete(groups)

    @property
    def can_trim(self) -> bool:
        """Whether `trim` would remove anything."""
        return self.first_place < self.oldest_end() <= self.progress.stored

    def oldest_end(self) -> int:
        """The place behind the oldest segment's last message."""
        files = self._messages.segments.files
        return files[1].base_lsn if len(files) > 1 else self._messages.first_lsn


def parse_progress(path: str, payload: bytes) -> OutboxProgress:
    """raises: OutboxError"""
    try:
        said = json.loads(payload)
        if said.pop("v") == 1:
            return OutboxProgress(**said)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise OutboxError(path, "its progress is of another version: use the rumq that wrote it")


def run_groups(writings: Sequence[Writing]) -> None:
    """Write and sync; a failure is in its group. For any thread."""
    for _, group in writings:
        try:
            group.run()
        except OSError as fault:
            group.failed(fault)
            group.run()


def as_frame(message: Outgoing) -> bytes:
    """raises: ValueError"""
    return encode(Publish(message.topic, message.payload, 2, False, False, 1, message.properties), 5)


def messages_in(chunk: Chunk) -> list[StoredMessage]:
    words = memoryview(chunk.rows).cast("B").cast("I")
    frames = memoryview(chunk.frames)
    starts = [words[row * ROW_WORDS + FRAME_WORD] for row in range(chunk.count)]
    found = []
    for row, (start, end) in enumerate(zip(starts, [*starts[1:], len(frames)], strict=True)):
        flags = words[row * ROW_WORDS + ROW_WORDS - 1] & 0xFFFF
        expires, is_retained = bool(flags & ROW_EXPIRY), bool(flags & ROW_RETAIN)
        found.append(StoredMessage(chunk.base_lsn + row, bytes(frames[start:end]), is_retained, expires, chunk.base_ts))
    return found


def payloads_in(chunk: Chunk) -> list[bytes]:
    words = memoryview(chunk.rows).cast("B").cast("I")
    return [message.frame[words[row * ROW_WORDS + PAYLOAD_WORD] :] for row, message in enumerate(messages_in(chunk))]
