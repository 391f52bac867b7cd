"""Reads this node's copy of a partition that another node leads, up to where it is proven to be committed.

Another process writes these files, and may cut, trim or fill them anew at any time. What is returned lies below a
committed mark in the files, and was read while the copy was part of one term: R8 in docs/explanation/replication.md."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.chunk import Chunk, Gap
from commitlog.disk.files import Files, whole_file
from commitlog.format.joined_chunks import joined
from commitlog.index.index_builder import NUMBERS_MAX
from commitlog.index.name_recovery import topic_of
from commitlog.index.segments import PlaceCache
from commitlog.kernels import rows as kernel
from commitlog.read.partition_view import PartitionView
from commitlog.replica.replica_note import decoded
from commitlog.replica.replica_state import DIRECTORY
from commitlog.row_layout import FRAME_WORD, ROW_WORDS

SEGMENTS_KEPT = 2  # whose chunk positions are kept: a replay goes from one segment to the next
JOINED_BYTES_MAX = 1 << 16  # of small chunks that are returned as one
MARKS = 1024  # topic numbers that the marks grow by
Names = list[tuple[int, bytes]]


class CopyRead(NamedTuple):
    """chunks: consecutive, the first has the lsn that was asked for; none: the copy cannot prove that record

    names: (topic number, topic) of the topics that no earlier read of this reader has named
    why: what is damaged in the copy; empty: nothing"""

    chunks: list[Chunk]
    names: Names
    why: str = ""


NOTHING = CopyRead([], [])


class CopyReader:
    """end_lsn: up to where the last look at the files found records that are committed"""

    def __init__(self, files: Files, root: str, shard: int, stream: str, generation: int, number: int) -> None:
        """root: the data directory; shard: that the partition belongs to; nothing is opened yet"""
        self._files = files
        self._state_path = f"{root}/{DIRECTORY}/shard-{shard}.json"
        self._directory = f"{root}/{stream}/g{generation}/p{number}"
        self._partition = stream, generation, number
        self._term = 0
        self._view: PartitionView | None = None
        self._cache = PlaceCache(SEGMENTS_KEPT)
        self._named = bytearray()  # a byte for each topic number: whether it has been named
        self.end_lsn = 0

    def read(self, lsn: int, epoch: int, bytes_max: int) -> CopyRead:
        """Whole chunks from the one with `lsn` on.

        epoch: a term that the leader is known to have had; a copy of an earlier term may have records that the leader
        has not. raises: OSError; cost: below `end_lsn` one sequential read, else a look at every segment's header"""
        try:
            found = self._read_of_one_term(lsn, epoch, bytes_max)
        except FileNotFoundError:  # trimmed, cut or put aside meanwhile, or never there
            found = NOTHING
            self.forget()
        except BaseException:
            self.forget()  # what it has named was not returned
            raise
        return found

    def forget(self) -> None:
        """Begin with the files anew: of what was returned last, nothing was used."""
        self._view, self._cache, self._term = None, PlaceCache(SEGMENTS_KEPT), 0
        self._named = bytearray()
        self.end_lsn = 0

    def _read_of_one_term(self, lsn: int, epoch: int, bytes_max: int) -> CopyRead:
        term = self._maybe_term()
        if term is None or term < epoch:
            self.forget()
            return NOTHING
        if term != self._term:
            self.forget()
        found = self._read(lsn, bytes_max)
        if found.why:
            # What was known of the files may be older than they are; damage is found again.
            self.forget()
            found = self._read(lsn, bytes_max)
        # A copy is cut only after a higher epoch was promised: then what was read may be of two logs.
        if found.why or self._maybe_term() != term:
            self.forget()
            return found._replace(chunks=[], names=[])
        self._term = term
        return found

    def _maybe_term(self) -> int | None:
        """The epoch of the leader of whose log the copy is a part; None: a change is under way, or it is doubted."""
        try:
            state = decoded(whole_file(self._files, self._state_path))
        except FileNotFoundError:
            return None
        if state is None or state.promised != state.opened or state.opened <= 0:
            return None
        # Of two leaders of one epoch, which a restored control plane may name, it is the promised one's copy.
        is_other = "" not in (state.promised_term, state.opened_term) and state.promised_term != state.opened_term
        return None if is_other else state.opened

    def _read(self, lsn: int, bytes_max: int) -> CopyRead:
        view = self._view
        if view is None or lsn >= view.end_lsn:
            stream, generation, number = self._partition
            view = self._view = PartitionView(
                self._files, self._directory, stream, generation, number, held=True, earlier=view, only_marked=True
            )
            self.end_lsn = view.end_lsn
        if not view.first_lsn <= lsn < view.end_lsn:
            return NOTHING
        chunks: list[Chunk] = []
        why = ""
        for piece in view.cold_read(lsn, bytes_max, self._cache).run():
            if isinstance(piece, Gap):
                why = piece.why
                break
            # Packet ids and sequences of publishers are for the leader's own recovery.
            chunks.append(Chunk(piece.base_lsn, piece.count, piece.base_ts, piece.flags, piece.rows, piece.frames))
        names: Names = []
        for chunk in chunks:
            if not self._name(chunk, names):
                return CopyRead([], [], f"{self._directory}: lsn {chunk.base_lsn} has a topic that was never numbered")
        whole = [each for each in joined(chunks, JOINED_BYTES_MAX) if isinstance(each, Chunk)]
        return CopyRead(whole, names, "" if whole else why)

    def _name(self, chunk: Chunk, names: Names) -> bool:
        """Add the topics of a chunk that have not been named, each by a frame of its own."""
        _, highest, _ = kernel.bounds(chunk.rows)
        if highest >= NUMBERS_MAX:
            return False
        if highest >= len(self._named):
            self._named.extend(bytes(highest + MARKS - len(self._named)))
        words = memoryview(chunk.rows).cast("B").cast("I")
        for number, offset in kernel.first_seen(chunk.rows, 0, self._named):
            row = int(kernel.first_of_topic(chunk.rows, number, offset))
            names.append((number, topic_of(memoryview(chunk.frames)[words[row * ROW_WORDS + FRAME_WORD] :])))
        return True
