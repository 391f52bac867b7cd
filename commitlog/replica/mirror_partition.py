"""A follower's copy of a partition: what the leader sends is checked, written, synced, cut.

docs/reference/log-format.md.
Everything that the leader has sent counts once `sync` returns. At every moment a recovery of the directory finds a
prefix of what was sent. Blocking; for one thread, but for the jobs that it gives out."""

from __future__ import annotations

from collections.abc import Sequence

from commitlog.chunk import Buffer
from commitlog.errors import CutBelowCommitted, Damaged, LogError
from commitlog.format.segment import decode_segment_header
from commitlog.replica.copy_segments import CopySegments, end_edit
from commitlog.replica.cut_plan import planned
from commitlog.replica.inventory import SegmentState
from commitlog.replica.replica_names import SealJob
from commitlog.replica.tail.chunk_check import checked
from commitlog.replica.tail.refill import Refill
from commitlog.replica.tail.tail_segment import TailSegment, created_tail, opened_tail
from commitlog.write.packed_replacement import PackedReplacement
from commitlog.write.segment_packing import SegmentPacking


class MirrorPartition(CopySegments):
    """next_lsn, position: where the next chunk goes. For the rest see `CopySegments`"""

    def note_committed(self, lsn: int) -> None:
        """Everything below is committed: it is never cut, and what is finished may be indexed."""
        self.committed_lsn = max(self.committed_lsn, lsn)

    def forget_committed(self) -> None:
        """An operator has forced a leader, whose log may lack what was committed."""
        self.committed_lsn = self.first_lsn

    # What the leader sends

    def open_segment(self, name: str, header: bytes) -> None:
        """The next segment begins; everything before it is synced then. header: 4,096 bytes

        raises: OSError, LogError; Damaged, FormatTooNew: nothing was changed then"""
        self._check()
        path = f"{self.directory}/{name}"
        decoded = decode_segment_header(header, path)
        if (decoded.stream, decoded.partition) != self._identity:
            raise Damaged(path, f"it belongs to {decoded.stream}/p{decoded.partition}")
        if name != f"{decoded.base_lsn:020d}-{decoded.uuid.hex()[:8]}.seg":
            raise Damaged(path, "its name is not that of its header")
        if self._refill is not None:
            with self._changing():
                self._refill.begin(name, decoded, header)
            return
        if decoded.base_lsn != self.next_lsn:
            raise LogError(f"{path} begins at lsn {decoded.base_lsn}, and {self.next_lsn} is next")
        self._check_order(decoded)
        try:
            self._end_tail()
            if self._files.exists(path):  # of a creation that was interrupted: it is in no inventory
                self._files.remove(path)
                self._files.sync_directory(self.directory)
            tail = created_tail(self._files, path, decoded, header)
            self._manifest.add({"edit": "open", "segment": name, "base_lsn": decoded.base_lsn})
        except BaseException:
            self.failed = True
            raise
        self._tail = tail

    def write(self, name: str, position: int, data: Buffer) -> None:
        """Whole chunks of the last segment. Not synced. raises: LogError; Damaged: nothing was written then; OSError"""
        if self._refill is not None:
            self._check()
            with self._changing():
                self._refill.write(name, position, data)
                if self._refill.is_whole:
                    self._take_refill(self._refill)
            return
        tail = self._tail
        if self.failed or tail is None or tail.name != name or tail.is_ragged or tail.is_sealed:
            tail = self._writable(name)
        if position != tail.position:
            raise LogError(f"{tail.path} ends at byte {tail.position}, and chunks for byte {position} were sent")
        found = checked(data, tail.header.salt, tail.chain, self.next_lsn, tail.path, position)
        try:
            tail.write(data, found.chain)
        except BaseException:
            self.failed = True
            raise
        tail.is_sealed, self.next_lsn = found.is_sealed, found.next_lsn

    def wants_room(self) -> bool:
        """Whether `make_room` is due."""
        return self._refill is None and self._tail is not None and not self.failed and self._tail.wants_room()

    def make_room(self) -> None:
        """Write zeros ahead, so that a sync changes no metadata; when nothing else is to be done. raises: OSError"""
        self._check()
        if self._tail is None:
            return
        try:
            if self._tail.is_ragged:
                self._tail.give_back()
            self._tail.make_room(self.directory, self._segment_bytes_max)
            if not self._tail.is_dirty:
                self.synced_lsn = self.next_lsn
        except BaseException:
            self.failed = True
            raise

    def trim(self, first_lsn: int) -> None:
        """Retention has removed everything below on the leader. raises: OSError"""
        self._check()
        segments = self.segments
        count = 0
        while count < len(self._segments) and count + 1 < len(segments) and segments[count + 1].base_lsn <= first_lsn:
            count += 1
        if not count:
            return
        self.sync()
        gone, first_lsn = self._segments[:count], segments[count].base_lsn
        try:
            self._names.cover(gone, first_lsn)
            self._manifest.add({"edit": "first", "lsn": first_lsn})
            self.first_lsn = first_lsn
            self.note_committed(first_lsn)
            del self._segments[:count]
            self._names.drop_from_queue(gone)
            self._remove(gone)
        except BaseException:
            self.failed = True
            raise

    def cut(
        self, drop: list[str], name: str, end_lsn: int, stop: int, first_lsn: int, *, salt: int = 0, refill: str = "",
        refill_lsn: int = 0,
    ) -> None:  # fmt: skip
        """Make the copy a prefix of the leader's log, as `differences.difference` says; synced when it returns.

        drop: segments to remove; name: of the one that is to end at byte `stop`, before `end_lsn`; "": none
        first_lsn: of the leader's log; segments below it are removed too, and a copy that `begins_anew` begins there
        salt: of the file that `stop` is a byte of; in one with another salt it is found. 0: of the one that is here
        refill, refill_lsn: the last segment left, which is sent again as another file; it keeps what it has until
        that one goes up to this lsn
        raises: CutBelowCommitted, LogError, Damaged: nothing was changed then; OSError"""
        self._check()
        if self._refill is not None:
            self._refill.discard()
            self._refill = None
        self.sync()
        is_anew = self.begins_anew(drop, name, first_lsn)
        if name and salt:
            stop = self._own_stop(name, end_lsn, stop, salt)
            # A chunk goes beyond: the segment is sent again, if what is committed allows it to be dropped.
            drop, name = (drop, name) if stop else ([*drop, name], "")
        plan = planned(self.segments, drop, name, end_lsn, stop, max(first_lsn, self.first_lsn))
        if plan.end_lsn < self.committed_lsn:
            raise CutBelowCommitted(self.directory, plan.end_lsn, self.committed_lsn)
        if refill and (not plan.kept or plan.kept[-1].name != refill or refill_lsn < plan.end_lsn):
            raise LogError(
                f"{self.directory}/{refill} is to be sent again up to lsn {refill_lsn}, and is not the last one"
            )
        shortened: TailSegment | None = None
        if plan.cut is not None:
            shortened = opened_tail(self._files, f"{self.directory}/{name}", stop, end_lsn)
        try:
            if self._tail is not None:
                self._tail.close()
                self._tail = None
            self._carry_out(plan, shortened)
            if is_anew:
                self._begin_at(first_lsn)
        except BaseException:
            self.failed = True
            raise
        self.doubt = ""
        if refill:
            self._refill = Refill(self._files, self.directory, refill, refill_lsn)

    def begins_anew(self, drop: Sequence[str], name: str, first_lsn: int) -> bool:
        """Whether such a cut, if it is not refused, leaves nothing, and retention had gone further here than there."""
        is_later = first_lsn < self.first_lsn and self.committed_lsn <= self.first_lsn
        return is_later and not name and all(each.name in drop for each in self.segments)

    def adopt_names(self, raw: bytes) -> None:
        """The leader's topics and publishers, of a copy that has no segment yet: those whose records are removed keep
        their numbers. raw: as of `saved_names`. raises: OSError; LogError, Damaged: nothing was changed then"""
        self._check()
        if self._segments or self._tail is not None:
            raise LogError(f"{self.directory} has segments: names come with them")
        with self._changing():
            is_whole = self._names.adopt(raw, self.first_lsn)
        if not is_whole:
            raise Damaged(self.directory, "the names that were sent are damaged")

    def take_seal_job(self) -> SealJob | None:
        """The indexing of a finished and committed segment, for another thread; None: there is none."""
        return None if self._refill is not None else self._names.maybe_job(self.committed_lsn)

    @property
    def packable_below(self) -> int:
        """What ends at or below this lsn is committed and indexed."""
        return min(self.committed_lsn, self._names.lsn)

    def replace_packed(self, packing: SegmentPacking) -> bool:
        """Put a packed file in the place of its segment; False: that is not here any more. raises: OSError

        No index job may be under way."""
        self._check()
        old, packed = packing.segment, packing.packed
        assert packed is not None
        found = (old.path.rpartition("/")[2], old.salt, packed.end_lsn, True)
        states = [(each.name, each.salt, each.end_lsn, each.is_done) for each in self._segments]
        if found not in states or packed.end_lsn > self.packable_below:
            packing.discard()
            return False
        with self._changing():
            PackedReplacement(self._files, self, old, packed).run()
        at = states.index(found)
        self._segments[at] = self._segments[at]._replace(stop=packed.stop, salt=packed.salt)
        return True

    def note_packed(self, path: str, end_lsn: int, stop: int, salt: int) -> None:
        """raises: OSError"""
        state = SegmentState(path.rpartition("/")[2], 0, end_lsn, stop, True, salt)
        self._manifest.add(end_edit("seal", state))

    def close(self) -> None:
        """Syncs nothing."""
        if self._refill is not None:
            self._refill.close()
            self._refill = None
        if self._tail is not None:
            self._tail.close()
            self._tail = None
        self._manifest.close()
        self.failed = True
