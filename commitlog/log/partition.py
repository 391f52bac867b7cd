"""One partition of a stream, for its owner: append, read, and the written, durable and committed lsns.

Appending, and reading recent records, never block. Work that may block on a disk is an object with a `run` for another
thread: `WriteGroup`, `ColdReadTask`, `TimeSearch`, `IndexJob`. The time is an argument."""
# compiled: hot

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from commitlog.chunk import Buffer, Chunk, Gap
from commitlog.disk.clock_guard import Jump, remembered
from commitlog.disk.files import Files
from commitlog.disk.os_errors import while_running
from commitlog.disk.space import Sealed
from commitlog.errors import LogError, LogFailure, NotInMemory, OffsetTrimmed
from commitlog.format.chunk_position import ChunkPosition
from commitlog.index.index_job import IndexJob
from commitlog.index.segment_news import SegmentEnded, SegmentOpened
from commitlog.index.segments import SegmentFile, SegmentList
from commitlog.kernels import rows as kernel
from commitlog.kernels.names import NumberOf
from commitlog.log.partition_types import PartitionId
from commitlog.log.recovery import Recovered
from commitlog.names.publisher_names import PublisherNames
from commitlog.read.cold_reads import ColdReadTask, Flagged, OffsetSearch, TimeSearch
from commitlog.row_layout import tag_publishers
from commitlog.write.retention import (
    NoteJumps,
    SegmentRemoval,
    finished_ones,
    segments_to_drop,
    without_wanted,
)
from commitlog.write.segment_writer import SegmentWriter, bytes_of
from commitlog.write.write_group import WriteGroup

HOT_TRIM, CHUNK_BYTES = 64, 1024  # memory of a chunk beside rows and frames: objects, routes, blobs


class Partition:
    """A dense sequence of records. index: among all of the store; starts: (epoch, lsn) where each writer began"""

    is_mirrored = is_volatile = False

    def __init__(
        self, files: Files, directory: str, identity: PartitionId, writer: SegmentWriter, segments: SegmentList,
        found: Recovered, hot_bytes_max: int,
    ) -> None:  # fmt: skip
        self.files, self.directory = files, directory
        self.spec, self.stream = identity.spec, identity.spec.name
        self.index, self.number, self.generation = identity.index, identity.number, identity.generation
        self.writer = writer
        self.topic_names = found.topic_names
        self.topic_ids = NumberOf(found.topic_names)
        self.publisher_names: PublisherNames = found.publishers
        self.segments, self.next_offsets, self.starts = segments, found.next_offsets, found.starts
        self.next_lsn = self.written_lsn = self.durable_lsn = self.marked_lsn = found.next_lsn
        self.offline: LogFailure | None = None
        self.pending_bytes = self.wants_room = 0  # wants_room: so many groups ago zeros ahead became due
        self.replicated_lsn: int | None = None  # of a stream of quorum: a majority has everything below
        self._last_ts = found.last_ts
        self._pending: list[Chunk] = []
        self._in_flight: WriteGroup | None = None
        self._hot: list[Chunk] = []
        self._hot_lsns: list[int] = []
        self._hot_bytes, self._hot_bytes_max = 0, hot_bytes_max

    # Numbers

    @property
    def ack_source(self) -> Partition:
        return self

    @property
    def first_lsn(self) -> int:
        return self.segments.first_lsn

    @property
    def committed_lsn(self) -> int:
        """Everything below is as safe as the stream promises."""
        return self.committed()

    def committed(self) -> int:
        """As `committed_lsn`, for compiled callers."""
        if self.replicated_lsn is not None:
            return self.replicated_lsn
        return self.durable_lsn if self.writer.sync_groups else self.written_lsn

    def note_replicated(self, lsn: int) -> None:
        """A majority of the copies, this one among them, has synced everything below."""
        self.replicated_lsn = max(lsn, self.replicated_lsn or 0)

    def add_topic(self, name: bytes) -> int:
        """Add a topic; returns its number."""
        topic_id = len(self.topic_names)
        self.topic_names.append(name)
        self.topic_ids.add(topic_id)
        self.next_offsets.append(0)
        return topic_id

    def add_publisher(self, client_id: str) -> int:
        """The number of a publisher, from 1; added if its client id has none. Held until it is released."""
        return self.publisher_names.hold(client_id.encode())

    def release_publisher(self, number: int) -> None:
        self.publisher_names.release(number)

    def known_publisher(self, client_id: str) -> int:
        return self.publisher_names.known(client_id.encode())

    def time_near(self, lsn: int) -> int:
        """The approximate time of a record, µs since 1970: of its chunk in memory, else interpolated between segments.

        0: not known. Reads no file"""
        at = bisect_right(self._hot_lsns, lsn) - 1
        if at >= 0:
            return self._hot[at].base_ts
        return self.segments.time_near(lsn, self.next_lsn, self._last_ts)

    # Writing

    def append(
        self, rows: bytearray | memoryview, frames: Buffer, count: int, flags: int, now_us: int, tags: bytes = b"",
        sources: bytes = b"",
    ) -> Chunk:  # fmt: skip
        """Append records, whose rows have topic_id, frame_pos, payload_pos, pub_no and flags; keeps the buffers.

        Assigns lsns, topic offsets and a time; in memory only, until a group writes it. Cost: one pass over the rows.
        """
        unknown = kernel.number_rows(rows, count, self.next_offsets)
        if unknown >= 0:
            raise LogError(f"row {unknown} has a topic id that was never added")
        self._last_ts = now_us = max(now_us, self._last_ts)  # time never runs backwards in a partition
        chunk = Chunk.__new__(Chunk)
        chunk.set(self.next_lsn, count, now_us, flags, rows, frames, tags, sources)
        self.next_lsn += count
        size = len(rows) + len(frames)
        self.pending_bytes += size
        self._pending.append(chunk)
        self._hot.append(chunk)
        self._hot_lsns.append(chunk.base_lsn)
        self._hot_bytes += size + CHUNK_BYTES
        return chunk

    def take_group(self) -> WriteGroup | None:
        """The next group to write; None while one is in flight, or when nothing is pending."""
        if self._in_flight is not None or not self._pending:
            return None
        chunks, self._pending = self._pending, []
        group = self._in_flight = WriteGroup.__new__(WriteGroup)
        group.set(self.writer, chunks, self.committed(), self.next_lsn)
        return group

    def take_mark(self, now_us: int) -> WriteGroup | None:
        """A group that writes a MARK chunk with the committed lsn, if that has moved and nothing is pending."""
        if self._in_flight is not None or self._pending or self.marked_lsn >= self.committed_lsn or self.offline:
            return None
        self._in_flight = WriteGroup(self.writer, self.committed_lsn, self.next_lsn, max(now_us, self._last_ts))
        return self._in_flight

    def take_preallocation(self) -> WriteGroup | None:
        """A group that writes zeros ahead of the active segment's data, so that later syncs change no metadata."""
        if self._in_flight is not None or self.offline or not self.wants_room:
            return None
        self.wants_room = 0
        self._in_flight = WriteGroup(self.writer, self.committed(), self.committed(), 0, preallocates=True)
        return self._in_flight

    def wants_to_roll(self, now_us: int) -> bool:
        """Whether the active segment is older than segment_seconds_max.

        Appends end it on their own; without any it would never be finished."""
        files = self.segments.files
        if not files or not files[-1].first_ts:
            return False
        return now_us - files[-1].first_ts > self.spec.segment_seconds_max * 1_000_000

    def take_roll(self, now_us: int) -> WriteGroup | None:
        """A group that ends the active segment, whatever its size, and opens another; None if it has no record.

        Also None while records are pending: then the next group ends it."""
        files = self.segments.files
        if not files or self.offline or not files[-1].first_ts:
            return None
        if self._in_flight is not None or self._pending:
            self.writer.must_end = True
            return None
        now_us = max(now_us, self._last_ts)
        self._in_flight = WriteGroup(self.writer, self.committed(), self.next_lsn, now_us, roll=True)
        return self._in_flight

    def complete(self, group: WriteGroup) -> LogFailure | None:
        """Apply the results of a group's run; returns the failure that it met, if any.

        If another segment could be written after the failure, the group is as safe as any. If none could, the partition
        is `offline`: nothing is acknowledged, and the next group retries with all that is pending."""
        self._in_flight = None
        segments = self.segments
        if group.place is not None:
            segments.last().take(group.place)
        for news in group.news:
            if isinstance(news, ChunkPosition):
                segments.last().take(news)
            elif isinstance(news, SegmentOpened):
                segments.files.append(SegmentFile(news.path, news.header.base_lsn, news.header.salt))
            elif isinstance(news, SegmentEnded):
                segments.ended(news.end_lsn, news.logical_end, news.draft)
            else:
                segments.active.allocated = news.end
        if group.chunks:
            self.written_lsn = group.safe_lsn
            if self.writer.sync_groups:
                self.durable_lsn = group.safe_lsn
        if group.offline is not None:
            return self._go_offline(group, group.offline)
        self.marked_lsn = max(self.marked_lsn, 0 if group.preallocates else group.durable_lsn)
        self.wants_room = self.wants_room + 1 if group.wants_room else 0
        if group.chunks:
            self.offline = None
            self.pending_bytes -= group.bytes
            self._trim()
            self.publisher_names.trim(self.next_lsn, self._hot_lsns[0] if self._hot_lsns else self.next_lsn)
        if group.fault is None:
            return None
        return LogFailure(self.directory, f"{group.fault}: {while_running(group.fault)}; went on in a new segment")

    def _go_offline(self, group: WriteGroup, fault: OSError) -> LogFailure:
        """Keep what no segment could take of a group, for the next one."""
        waiting = [chunk for chunk in group.chunks if chunk.base_lsn >= group.safe_lsn]
        self.pending_bytes -= group.bytes - bytes_of(waiting)
        self._pending[:0] = waiting
        why = f"{fault}: {while_running(fault)}; nothing is acknowledged until a write succeeds"
        self.offline = LogFailure(self.directory, why)
        return self.offline

    def _trim(self) -> None:
        """Evict the oldest chunks in memory that are on disk, and committed: others are read nowhere else."""
        if self._hot_bytes <= self._hot_bytes_max:
            return
        gone, safe_lsn, size = 0, self._readable_lsn(), self._hot_bytes
        for chunk in self._hot:
            if size <= self._hot_bytes_max or chunk.next_lsn > safe_lsn:
                break
            size -= len(chunk.rows) + len(chunk.frames) + CHUNK_BYTES
            gone += 1
        if gone >= HOT_TRIM or (gone and size < self._hot_bytes - (1 << 22)):
            self._hot_bytes = size
            del self._hot[:gone], self._hot_lsns[:gone]

    # Reading

    def read(self, lsn: int, bytes_max: int = 1) -> list[Chunk | Gap]:
        """Chunks from the one that holds `lsn` on, as long as they are in memory; at least one, or [] at the end.

        raises: OffsetTrimmed; NotInMemory when `cold_read` must fetch it
        """
        if lsn >= self.next_lsn:
            return []
        if lsn < self.first_lsn:
            raise OffsetTrimmed(lsn, self.first_lsn)
        at = bisect_right(self._hot_lsns, lsn) - 1
        if at < 0 or self._hot[at].next_lsn <= lsn:
            raise NotInMemory(lsn)
        found: list[Chunk | Gap] = [self._hot[at]]
        size = len(self._hot[at].frames)
        while size < bytes_max and at + 1 < len(self._hot):
            at += 1
            found.append(self._hot[at])
            size += len(self._hot[at].frames)
        return found

    def cold_read(self, lsn: int, bytes_max: int = 1 << 20) -> ColdReadTask:
        """A read from disk, for another thread."""
        segments = self.segments
        return ColdReadTask(
            self.files, segments.snapshot(), segments.cache, lsn, self._readable_lsn(), bytes_max, self.publisher_names
        )

    def find_time(self, ts_us: int) -> TimeSearch:
        """A search, for another thread, for the first lsn with that time or a later one."""
        return TimeSearch(
            self.files, self.segments.snapshot(), self.segments.cache, self._unwritten(), ts_us, self.next_lsn
        )

    def find_offset(self, topic: bytes, offset: int) -> OffsetSearch:
        """A search, for another thread, for the lsn of a topic's offset, or of its next one that still exists."""
        return OffsetSearch(
            self.files, self.segments.snapshot(), self.segments.cache, self._unwritten(),
            self.topic_ids.get(topic), offset, self.next_lsn,
        )  # fmt: skip

    def uncommitted_tags(self) -> Iterator[tuple[int, int]]:
        """(publisher number, packet id) of every inbound QoS 2 message that a crash could lose."""
        for chunk in self._hot[max(0, bisect_right(self._hot_lsns, self.committed_lsn) - 1) :]:
            if chunk.tags and chunk.next_lsn > self.committed_lsn:
                for _, publisher, packet_id in tag_publishers(chunk.rows, chunk.tags):
                    yield publisher, packet_id & 0xFFFF

    def flagged(self, flag: int) -> Flagged:
        """A search, for another thread, for the chunks with a flag."""
        return Flagged(self.files, self.segments.snapshot(), self.segments.cache, self._unwritten(), flag)

    def _readable_lsn(self) -> int:
        if self.replicated_lsn is not None and self.replicated_lsn < self.written_lsn:
            return self.replicated_lsn
        return self.written_lsn

    def _unwritten(self) -> list[Chunk]:
        return self._hot[bisect_right(self._hot_lsns, self.written_lsn - 1) :]

    # Housekeeping

    @property
    def last_ts(self) -> int:
        """The newest timestamp, µs since 1970; 0 when there is none."""
        return self._last_ts

    def look_at_clock(self, now_us: int, jump: Jump | None) -> NoteJumps | None:
        """Exclude this jump from the age of records; returns the job that writes it to the manifest."""
        jumps = remembered(self.segments.jumps, jump, self._last_ts, now_us)
        if jumps == self.segments.jumps:
            return None
        self.segments.jumps = jumps
        return NoteJumps(self.writer, jumps)

    def finish(self) -> None:
        """At the end of a run, if all is written: seal, index, and save the dictionary. For any thread; raises OSError.

        Nothing may be appended afterwards."""
        if self.pending_bytes or self.offline is not None:
            return
        sealed = self.writer.seal(self.next_lsn, self._last_ts, self.next_lsn)
        if sealed is not None:
            self.segments.ended(sealed.end_lsn, sealed.logical_end, sealed.draft)
        while (job := self.take_seal_job()) is not None:
            job.run()
        self.segments.dictionary.save(self.segments.dictionary.lsn)

    def take_seal_job(self) -> IndexJob | None:
        """The indexing of a finished segment, for another thread; None: all are indexed."""
        segment = self.segments.next_unindexed()
        return None if segment is None else IndexJob(self.files, segment, self.segments.dictionary)

    def retention_due(self, now_us: int | None) -> bool:
        """Whether `take_retention` would find something to remove, were nothing kept."""
        return segments_to_drop(self.segments.files, self.spec, now_us, self.segments.jumps, self._last_ts) > 0

    def take_retention(
        self, now_us: int | None, keep_lsn: int | None = None, wanted_lsn: int | None = None,
        wanted_bytes_max: int = 0, unexported_lsn: int | None = None, unexported_bytes_max: int = 0,
    ) -> SegmentRemoval | None:  # fmt: skip
        """The removal of segments that retention is due for, on the I/O thread; then call `removed`.

        now_us: None while `commitlog.disk.clock_guard` suspends retention by age
        keep_lsn: records from there on must stay; wanted_lsn: so must those from there on, of them at most the newest
        `wanted_bytes_max`; unexported_lsn: likewise"""
        files = self.segments.files
        due = segments_to_drop(files, self.spec, now_us, self.segments.jumps, self._last_ts)
        count = min(
            without_wanted(files, due, wanted_lsn, wanted_bytes_max),
            without_wanted(files, due, unexported_lsn, unexported_bytes_max),
            without_wanted(files, due, keep_lsn),
        )
        return self._removal(count)

    def take_removal(self, below_lsn: int) -> SegmentRemoval | None:
        """The removal of segments whose records are all below an lsn, as `take_retention`."""
        return self._removal(finished_ones(self.segments.files, below_lsn))

    def sealed(self, below_lsn: int | None) -> list[Sealed]:
        """The oldest segments: finished and indexed ones without a record from that lsn on (None: any)."""
        segments = self.segments
        count = finished_ones(segments.files, below_lsn)
        while count > 0 and segments.files[count].base_lsn > segments.dictionary.lsn:
            count -= 1
        return [Sealed(segment.first_ts, segment.disk_bytes) for segment in segments.files[:count]]

    def take_oldest(self, count: int) -> SegmentRemoval | None:
        """The removal of so many of `sealed`, as `take_retention`."""
        return self._removal(count)

    def removed(self, removal: SegmentRemoval) -> None:
        """Apply a removal that has run."""
        self.segments.removing = False
        if removal.done:
            self.segments.forget(removal.paths, removal.first_lsn)

    def _removal(self, count: int) -> SegmentRemoval | None:
        segments = self.segments
        count = without_wanted(segments.files, count, self.committed_lsn)  # copies may want the rest
        if segments.removing or segments.replacing or count <= 0:
            return None
        first_lsn = segments.files[count].base_lsn
        if segments.dictionary.lsn < first_lsn:
            return None  # not all of them are indexed
        segments.removing = True
        paths = [segment.path for segment in segments.files[:count]]
        return SegmentRemoval(self.files, self.writer, segments.dictionary, paths, first_lsn)
