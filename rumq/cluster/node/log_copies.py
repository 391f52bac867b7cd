"""The partitions of a shard on a node that does not lead it: `LogCopies` over `commitlog.replica`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from commitlog.disk.files import Files
from commitlog.errors import CutBelowCommitted, LogError
from commitlog.format.known_tail import KnownTail, TailReader
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.log.copy_packing import CopyPacking
from commitlog.replica.block_reader import has_saved_names, read_block, read_opening, saved_names
from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.replica.replica_state import StoredReplicaState
from commitlog.write.segment_packing import SegmentPacking
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import CutRefused, DataFrame
from rumq.net.frames import Raw

BLOCK_BYTES = 1 << 20


class CopyId(NamedTuple):
    """key: path below the data directory; stream, number: as in the headers of its segments"""

    key: str
    stream: str
    number: int


class NodeLogCopies:
    """Every partition of one shard."""

    def __init__(self, files: Files, data: str, partitions: Sequence[CopyId]) -> None:
        """raises: OSError, LogError"""
        self._files, self._data = files, data
        self._ids = {each.key: each for each in partitions}
        self._copies = {
            each.key: MirrorPartition(files, f"{data}/{each.key}", each.stream, each.number) for each in partitions
        }
        self._packings = {key: CopyPacking(files, f"{data}/{key}") for key in self._ids}
        self._lost_marks: dict[str, int] = {}  # by partition: the mark up to which a copy lacks records
        self._readers = {key: TailReader(files, f"{data}/{key}") for key in self._ids}
        self._touched: dict[str, None] = {}
        self._indexer = ThreadPoolExecutor(1, "rumq-index")
        self._indexing: Future[None] | None = None
        self._served = 0  # answers to claimants that are under way: they read files by bytes

    @property
    def doubt(self) -> str:
        """Why a copy may lack what it had acknowledged; empty: none does."""
        return next((f"{key}: {copy.doubt}" for key, copy in self._copies.items() if copy.doubt), "")

    @property
    def has_log(self) -> bool:
        return any(copy.next_lsn for copy in self._copies.values())

    def finished(self) -> list[tuple[str, SegmentState]]:
        """(directory, segment) of every finished segment."""
        return [(copy.directory, each) for copy in self._copies.values() for each in copy.segments if each.is_done]

    def work(self) -> bool:
        """When nobody waits: write zeros ahead, read the last segments, index what is finished. Mostly nothing is due.

        returns: whether there is more to do. raises: OSError"""
        for copy in self._copies.values():
            if copy.wants_room():
                copy.make_room()
        self._index_one()
        is_more = False
        for key, copy in self._copies.items():
            is_more |= self._readers[key].read_on(*copy.tail)
        return is_more

    def tails(self) -> dict[str, KnownTail]:
        """Of the last segments, by key, for whoever opens the log next, once all is synced. raises: OSError"""
        found = {key: self._readers[key].maybe_known(*copy.tail) for key, copy in self._copies.items()}
        return {key: tail for key, tail in found.items() if tail is not None}

    def _index_one(self) -> None:
        if self._indexing is not None:
            if not self._indexing.done():
                return
            self._indexing.result()
            self._indexing = None
        for copy in self._copies.values():
            job = copy.take_seal_job()
            if job is not None:
                self._indexing = self._indexer.submit(job.run)
                return

    # Packing

    def take_packing(self, salt: int) -> tuple[str, SegmentPacking] | None:
        """(partition, the packing of one of its segments), for another thread; None: all were looked at."""
        for key, copy in self._copies.items():
            is_journal = self._ids[key].stream.startswith("_")
            if copy.failed or is_journal:
                continue
            packing = self._packings[key].take(copy.segments, copy.packable_below, salt)
            if packing is not None:
                return key, packing
        return None

    def retry_packing(self, key: str, packing: SegmentPacking) -> None:
        self._packings[key].retry(packing)

    @property
    def can_replace(self) -> bool:
        """Whether nobody reads a file by bytes that another one is about to replace."""
        return not self._served and (self._indexing is None or self._indexing.done())

    def replace_packed(self, key: str, packing: SegmentPacking) -> bool:
        """As `MirrorPartition.replace_packed`, while `can_replace`. raises: OSError"""
        return self._copies[key].replace_packed(packing)

    def ends(self) -> dict[str, int]:
        """0: a copy that lacks names, though it begins later. What is committed protects it from being chosen."""
        for key in self._touched:  # they are acknowledged by the next `sync`
            self._copies[key].sync()
        return {key: 0 if copy.lacks_names else copy.next_lsn for key, copy in self._copies.items()}

    def inventory(self, partition: str) -> list[m.SegmentInfo]:
        copy = self._copy(partition)
        copy.sync()
        return infos(copy.segments)

    def begins_anew(self, cut: m.Cut) -> bool:
        return self._copy(cut.partition).begins_anew(cut.drop, cut.name, cut.first_lsn)

    def apply(self, frame: DataFrame, raw: memoryview) -> None:
        copy = self._copy(frame.partition)
        self._touched[frame.partition] = None
        if isinstance(frame, m.Write):
            was_refilling = copy.is_refilling
            copy.write(frame.name, frame.position, raw)
            if was_refilling and not copy.is_refilling:
                self._readers[frame.partition].begin("")
        elif isinstance(frame, m.Open):
            copy.open_segment(frame.name, bytes(raw))
        elif isinstance(frame, m.Cut):
            known = copy.committed_lsn
            if self._indexing is not None and (frame.refill or self.begins_anew(frame)):
                self._indexing.result()  # what it finds belongs to the log of before, or to the file
            try:
                copy.cut(
                    frame.drop, frame.name, frame.end_lsn, frame.stop, frame.first_lsn, salt=frame.salt,
                    refill=frame.refill, refill_lsn=frame.refill_lsn,
                )  # fmt: skip
            except CutBelowCommitted as fault:
                raise CutRefused(frame.partition, str(fault)) from fault
            if copy.committed_lsn < known:  # it begins anew
                self._lost_marks[frame.partition] = max(known, self._lost_marks.get(frame.partition, 0))
            self._readers[frame.partition].begin("")
        elif isinstance(frame, m.Names):
            copy.adopt_names(bytes(raw))
        else:
            copy.trim(frame.first_lsn)

    def sync(self) -> list[tuple[str, int, str, int]]:
        synced = []
        for key in self._sync_touched():
            copy = self._copies[key]
            name, stop = copy.reached
            synced.append((key, copy.next_lsn, name, stop))
        return synced

    def _sync_touched(self) -> list[str]:
        touched = list(self._touched)
        for key in touched:
            self._copies[key].sync()
        self._touched.clear()
        return touched

    def note_committed(self, partition: str, lsn: int) -> None:
        self._copies[partition].note_committed(lsn)

    def marks(self) -> dict[str, int]:
        found = {key: max(copy.committed_lsn, self._lost_marks.get(key, 0)) for key, copy in self._copies.items()}
        return {key: lsn for key, lsn in found.items() if lsn}

    def forget_marks(self) -> None:
        self._lost_marks.clear()
        for copy in self._copies.values():
            copy.forget_committed()

    def holdings(self) -> dict[str, tuple[int, str]]:
        return {key: (end, self._copies[key].tail[0]) for key, end in self.ends().items()}

    def restore_notes(self, state: StoredReplicaState) -> str:
        """As noted on disk. returns: why a copy may lack what it had acknowledged, "" if none does"""
        doubts = []
        for key, copy in self._copies.items():
            mark = state.marks.get(key, 0)
            lack = state.maybe_lack(key, copy.first_lsn, copy.next_lsn, [each.name for each in copy.segments])
            if lack is None:
                copy.note_committed(mark)
            else:
                # A mark says nothing of records that it was not noted with: these may be cut.
                self._lost_marks[key] = mark
                doubts.append(lack)
        return "; ".join(doubts)

    def serve(
        self, epoch: int, partition: str, have: list[m.SegmentInfo]
    ) -> Iterator[tuple[m.ReplicaMessage, Sequence[Raw]]]:
        """What a claimant's copy of a partition lacks, that has these segments; `Fetched` is the last message."""
        self._served += 1
        try:
            yield from self._serve(epoch, partition, have)
        finally:
            self._served -= 1

    def _serve(
        self, epoch: int, partition: str, have: list[m.SegmentInfo]
    ) -> Iterator[tuple[m.ReplicaMessage, Sequence[Raw]]]:
        copy = self._copy(partition)
        ours = copy.segments
        theirs = [SegmentState(s.name, s.base_lsn, s.end_lsn, s.stop, s.is_done, s.salt) for s in have]
        lacks = difference(ours, theirs)
        first = copy.first_lsn
        yield (
            m.Cut(
                epoch, partition, lacks.drop, lacks.name, lacks.end_lsn, lacks.stop, first, lacks.salt, lacks.refill,
                lacks.refill_lsn,
            ),
            (),
        )  # fmt: skip
        is_new = lacks.send_index == 0 and lacks.position == 0 and len(lacks.drop) == len(have)
        if first and is_new and (ours or has_saved_names(self._files, f"{self._data}/{partition}")):
            # A copy that begins anew behind records that are removed: their topics keep their numbers.
            yield m.Names(epoch, partition), (saved_names(self._files, f"{self._data}/{partition}"),)
        for at, segment in enumerate(ours[lacks.send_index :], lacks.send_index):
            path = f"{self._data}/{partition}/{segment.name}"
            position = lacks.position if at == lacks.send_index else 0
            if position < SEGMENT_HEADER_BYTES:
                yield (
                    m.Open(epoch, partition, segment.name, segment.base_lsn),
                    (read_opening(self._files, path, segment.salt),),
                )
                position = SEGMENT_HEADER_BYTES
            while position < segment.stop:
                block, following = read_block(self._files, path, position, segment.stop, BLOCK_BYTES, segment.salt)
                yield m.Write(epoch, partition, segment.name, position), (block,)
                position = following
        yield m.Fetched(epoch, partition), ()

    def _copy(self, partition: str) -> MirrorPartition:
        """raises: LogError"""
        copy = self._copies.get(partition)
        if copy is None:
            raise LogError(
                f"the leader has a partition {partition}, and this node has {', '.join(self._copies)}: all nodes of a "
                "cluster have the same [[stream]] settings, in the same order"
            )
        return copy

    def close(self) -> None:
        """raises: OSError"""
        self._indexer.shutdown()
        for copy in self._copies.values():
            copy.close()


def infos(states: Sequence[SegmentState]) -> list[m.SegmentInfo]:
    return [m.SegmentInfo(s.name, s.base_lsn, s.end_lsn, s.stop, s.is_done, s.salt) for s in states]
