"""A write group: the chunks of a partition that are written and synced to the active segment together, all or none.

A failed write or sync is never retried on the same file: the segment is abandoned at its logical end, and what was not
safe is written to a new one. `run` is for the I/O thread. A small group of a segment that is open already can do with
less: the loop lays it out (`begin`), writes it or has a thread write and sync it, and ends it (`end`)."""
# compiled: hot

from __future__ import annotations

from commitlog.chunk import HEADER_BYTES, Chunk
from commitlog.disk.preallocation import GROUP_BYTES_MAX
from commitlog.format.chunk_layout import are_one_piece, pieced
from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.index.segment_news import Preallocated, SegmentEnded, SegmentOpened
from commitlog.write.segment_writer import Flush, SegmentWriter, bytes_of

SMALL_BYTES_MAX = GROUP_BYTES_MAX
SPARE_BYTES = 2 * HEADER_BYTES  # of a segment, for the headers of a chunk and of the one that seals it
NO_PIECES: list[list[Chunk]] = []  # nothing is added to either
NO_NEWS: list[SegmentOpened | SegmentEnded | ChunkPosition | Preallocated] = []


class WriteGroup:
    """`run` on the I/O thread; then `Partition.complete` on the loop thread.

    news: segments opened and ended, and chunks written, in order, for the loop thread; place: of a small group's chunk,
    which is all that there is to tell of it; None: `news` does
    fault: a write or sync failed, and its records went to another segment; offline: or nowhere
    safe_lsn: everything below is written, and synced where the stream asks for it
    wants_room: the next one should write zeros ahead; preallocates: this one does, and nothing else
    """

    __slots__ = (
        "_failed", "_next", "_pieces", "_position", "_roll", "_writer", "bytes", "chunks", "durable_lsn", "end_lsn",
        "fault", "mark_us", "news", "offline", "place", "preallocates", "safe_lsn", "wants_room",
    )  # fmt: skip

    def __init__(
        self, writer: SegmentWriter, durable_lsn: int, end_lsn: int, mark_us: int, roll: bool = False,
        preallocates: bool = False,
    ) -> None:  # fmt: skip
        """One without chunks. durable_lsn: as it is when the group is taken; mark_us: when not 0, only write that down,
        at this time; roll: and go on in a new segment"""
        self.set(writer, [], durable_lsn, end_lsn)
        self.mark_us, self._roll, self.preallocates = mark_us, roll, preallocates

    def set(self, writer: SegmentWriter, chunks: list[Chunk], durable_lsn: int, end_lsn: int) -> None:
        """Once, of one that `__new__` has made: compiled callers need no object for a number."""
        self.preallocates = self.wants_room = self._roll = False
        self._writer = writer
        self.chunks = chunks
        self.durable_lsn = durable_lsn
        self.end_lsn = end_lsn
        self.mark_us = 0
        self.bytes = bytes_of(chunks)
        self.news: list[SegmentOpened | SegmentEnded | ChunkPosition | Preallocated] = NO_NEWS
        self.place: ChunkPosition | None = None
        self._failed: OSError | None = None
        self.fault: OSError | None = None
        self.offline: OSError | None = None
        self.safe_lsn = self.chunk(0).base_lsn if chunks else end_lsn
        self._pieces: list[list[Chunk]] = NO_PIECES
        self._next = 0  # the first piece that is not safe
        self._position = 0  # where the pieces from there on begin in the active segment

    def chunk(self, at: int) -> Chunk:
        """One of the chunks, for compiled callers."""
        return self.chunks[at]

    def run(self) -> None:
        self.news = []
        if self.mark_us or self.preallocates:
            self._position = self._writer.position
            try:
                if self.preallocates:
                    self._preallocate()
                elif self._roll:
                    self._go_on_in_another()
                else:
                    self._writer.mark(self.end_lsn, self.mark_us, self.durable_lsn)
            except Exception as fault:
                self._give_up(told(fault))
            return
        self._pieces = pieced(self.chunks) if len(self.chunks) > 1 else [self.chunks]
        attempts, failure = 2, self._failed
        if failure is not None:
            attempts = 1
            self._give_up(failure)
        for _ in range(attempts):
            try:
                self._write()
                self.end()
                return
            except Exception as fault:
                failure = told(fault)
                self._give_up(failure)
        self.offline = failure

    def is_small(self) -> bool:
        """Whether it is little, of a segment that is open: `run` does no more than write, and sync where it is due."""
        if self.bytes > SMALL_BYTES_MAX or not self.chunks:
            return False
        return not self._writer.must_roll(self.bytes + SPARE_BYTES, self.chunk(0).base_ts)

    def begin(self) -> Flush | None:
        """On the loop, if it is small: what is to be written, and synced where that is due, before `end`.

        None: `run` is to do it all.

        Whatever goes wrong, `failed` and then `run` go on in another segment."""
        if len(self.chunks) > 1 and not are_one_piece(self.chunks):
            return None
        self._position = self._writer.position
        self.place = ChunkPosition.__new__(ChunkPosition)
        try:
            return self._writer.lay_out(self.chunks, self.durable_lsn, self.place)
        except Exception as fault:
            self.failed(fault)
            return None

    def failed(self, fault: Exception) -> None:
        """What `begin` gave could not be written, or not be synced: its chunk is nowhere."""
        self._failed, self.place = told(fault), None

    def end(self) -> None:
        """All of it is written, and synced where that is due."""
        self.safe_lsn = self.end_lsn
        self.wants_room = self._writer.wants_room(self.bytes)

    def _preallocate(self) -> None:
        room = self._writer.preallocate()
        if room is not None:
            self.news.append(room)

    def _go_on_in_another(self) -> None:
        sealed = self._writer.seal(self.end_lsn, self.mark_us, self.durable_lsn)
        if sealed is not None:
            self.news.append(sealed)
        try:
            self.news.append(self._writer.open_segment(self.end_lsn, self.mark_us))
        except OSError:
            pass  # the next record opens it, or tells why that cannot be

    def _write(self) -> None:
        writer = self._writer
        self._position = writer.position
        last = len(self._pieces) - 1
        for index in range(self._next, last + 1):
            piece = self._pieces[index]
            size = bytes_of(piece) + SPARE_BYTES
            if writer.must_roll(size, piece[0].base_ts):
                sealed = writer.seal(piece[0].base_lsn, piece[0].base_ts, self.durable_lsn)
                if sealed is not None:
                    self.news.append(sealed)
                    self._next, self.safe_lsn = index, piece[0].base_lsn
                self.news.append(writer.open_segment(piece[0].base_lsn, piece[0].base_ts))
                self._position = writer.position
            self.news.append(writer.append(piece, self.durable_lsn, last=index == last))
        if writer.sync_groups:
            writer.sync()

    def _give_up(self, fault: OSError) -> None:
        """Abandon the active segment; of this group only what is safe counts in it."""
        self.fault = self.fault or fault
        while self.news and isinstance(self.news[-1], ChunkPosition) and self.news[-1].base_lsn >= self.safe_lsn:
            self.news.pop()
        if self._position > SEGMENT_HEADER_BYTES:
            ended = self._writer.fence(self.safe_lsn, self._position)
            if ended is not None:
                self.news.append(ended)
        elif self.news and isinstance(self.news[-1], SegmentOpened):
            self.news.pop()
            self._writer.discard()


def told(fault: Exception) -> OSError:
    """An exception that is no OSError, such as MemoryError, counts as a disk error: what was written may be wrong."""
    return fault if isinstance(fault, OSError) else OSError(0, f"{type(fault).__name__}: {fault}")
