"""A follower's copy of a partition: what the leader sends is checked, written, synced, cut.

docs/reference/log-format.md.
Everything that the leader has sent counts once `sync` returns. At every moment a recovery of the directory finds a
prefix of what was sent. Blocking; for one thread, but for the jobs that it gives out."""

from __future__ import annotations

from collections.abc import Sequence

from commitlog.chunk import Buffer
from commitlog.disk.files import Files, make_durable_directory
from commitlog.errors import CutBelowCommitted, Damaged, LogError, LogFailure
from commitlog.format.directory import open_and_look
from commitlog.format.manifest import Edit, Manifest
from commitlog.format.segment import SegmentHeader, decode_segment_header
from commitlog.replica.chunk_check import checked
from commitlog.replica.cut_plan import CutPlan, edits_of, planned
from commitlog.replica.inventory import SegmentState, survey
from commitlog.replica.replica_names import ReplicaNames, SealJob
from commitlog.replica.tail_segment import TailSegment, created_tail, opened_tail
from commitlog.write.retention import remove_segments

SEGMENT_BYTES_MAX = 64 << 20


class MirrorPartition:
    """next_lsn, position: where the next chunk goes; synced_lsn: everything below is synced
    committed_lsn: as the caller was told; doubt: why this copy may lack what it had acknowledged, until it is cut

    After an OSError the copy is `failed`: nothing is known of what was written, and it must be opened anew."""

    def __init__(
        self, files: Files, directory: str, stream: str, number: int, *,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> None:  # fmt: skip
        """Open or create a copy that nobody else writes. segment_bytes_max: about what the leader's segments have

        raises: OSError, FormatTooNew; cost: as `inventory`"""
        self._files, self.directory = files, directory
        self._stream, self._number = stream, number
        self._segment_bytes_max = segment_bytes_max
        self.failed = False
        make_durable_directory(files, directory)
        self._manifest = Manifest(files, directory)
        edits = self._manifest.load()
        found = survey(files, directory, edits, stream, number)
        self.doubt = found.doubt
        self.first_lsn = found.first_lsn
        self._segments = found.segments  # all but the tail
        self._tail: TailSegment | None = None
        self.next_lsn = found.segments[-1].end_lsn if found.segments else found.first_lsn
        self.synced_lsn, self.committed_lsn = self.next_lsn, self.first_lsn
        self._names = ReplicaNames(files, directory, self.first_lsn)
        is_empty = not (found.segments or found.doubt)
        if is_empty and self._names.lsn > self.first_lsn:  # it was about to begin anew
            self._names.forget(self.first_lsn)
        remove_segments(files, found.leftover)
        if found.found or len(edits) > 2 * len(found.segments) + 8:
            kept = edits_of([*edits, *found.found], found.segments, self.first_lsn, self.next_lsn)
            # In doubt nothing is forgotten: a recovery is to report it too.
            self._manifest.rewrite([*edits, *found.found] if self.doubt else kept)
        if self._segments and not self._segments[-1].is_done:
            self._continue_last()
        self._names.queue(self._segments)

    # What it has

    @property
    def segments(self) -> list[SegmentState]:
        """In order, with what was written and not yet synced."""
        tail = self._tail
        if tail is None:
            return list(self._segments)
        return [*self._segments, self._state_of(tail)]

    @property
    def tail(self) -> tuple[str, int]:
        """Name of the last segment, and the byte behind its last chunk; ("", 0): there is none."""
        if self._tail is not None:
            return self._tail.name, self._tail.position
        return (self._segments[-1].name, self._segments[-1].stop) if self._segments else ("", 0)

    @property
    def position(self) -> int:
        return self.tail[1]

    @property
    def lacks_names(self) -> bool:
        """It begins behind records that are removed, and has not been sent their topics yet: an owner who began with it
        would count the topics' offsets anew."""
        return self.first_lsn > self._names.saved_lsn and self.first_lsn > 0 and self.tail == ("", 0)

    def _state_of(self, tail: TailSegment) -> SegmentState:
        return SegmentState(tail.name, tail.header.base_lsn, self.next_lsn, tail.position, tail.is_sealed)

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
        if (decoded.stream, decoded.partition) != (self._stream, self._number):
            raise Damaged(path, f"it belongs to {decoded.stream}/p{decoded.partition}")
        if name != f"{decoded.base_lsn:020d}-{decoded.uuid.hex()[:8]}.seg":
            raise Damaged(path, "its name is not that of its header")
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

    def sync(self) -> None:
        """What was written since the last one is on disk then, and may be acknowledged. raises: OSError"""
        self._check()
        tail = self._tail
        if tail is None or not tail.is_dirty:
            return
        try:
            if tail.is_sealed:
                tail.give_back()
            tail.sync()
            self.synced_lsn = self.next_lsn
            if tail.is_sealed:
                self._finish("seal")
        except BaseException:
            self.failed = True
            raise

    def wants_room(self) -> bool:
        """Whether `make_room` is due."""
        return self._tail is not None and not self.failed and self._tail.wants_room()

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

    def cut(self, drop: list[str], name: str, end_lsn: int, stop: int, first_lsn: int) -> None:
        """Make the copy a prefix of the leader's log, as `differences.difference` says; synced when it returns.

        drop: segments to remove; name: of the one that is to end at byte `stop`, before `end_lsn`; "": none
        first_lsn: of the leader's log; segments below it are removed too, and a copy that `begins_anew` begins there
        raises: CutBelowCommitted, LogError, Damaged: nothing was changed then; OSError"""
        self._check()
        self.sync()
        plan = planned(self.segments, drop, name, end_lsn, stop, max(first_lsn, self.first_lsn))
        if plan.end_lsn < self.committed_lsn:
            raise CutBelowCommitted(self.directory, plan.end_lsn, self.committed_lsn)
        is_anew = self.begins_anew(drop, name, first_lsn)
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
        try:
            is_whole = self._names.adopt(raw, self.first_lsn)
        except BaseException:
            self.failed = True
            raise
        if not is_whole:
            raise Damaged(self.directory, "the names that were sent are damaged")

    def take_seal_job(self) -> SealJob | None:
        """The indexing of a finished and committed segment, for another thread; None: there is none."""
        return self._names.maybe_job(self.committed_lsn)

    def close(self) -> None:
        """Syncs nothing."""
        if self._tail is not None:
            self._tail.close()
            self._tail = None
        self._manifest.close()
        self.failed = True

    # Parts

    def _check(self) -> None:
        if self.failed:
            raise LogFailure(self.directory, "a write failed before, or it is closed: open it anew")

    def _check_order(self, header: SegmentHeader) -> None:
        """Of segments that begin at one lsn, a recovery takes the one of the highest order for the last."""
        segments = self.segments
        if segments and segments[-1].base_lsn == header.base_lsn:
            path = f"{self.directory}/{segments[-1].name}"
            last = open_and_look(self._files, path).header
            if header.order <= last.order:
                raise LogError(f"a segment of order {header.order} cannot follow {path} of order {last.order}")

    def _writable(self, name: str) -> TailSegment:
        """The last segment, made ready."""
        self._check()
        if self.tail[0] != name:
            raise LogError(f"{self.directory}: chunks of {name} were sent, and {self.tail[0] or 'none'} is open")
        if self._tail is None:
            self._continue_last()
        tail = self._tail
        assert tail is not None
        if tail.is_sealed:
            raise LogError(f"{tail.path} is sealed, and chunks for byte {tail.position} of it were sent")
        if tail.is_ragged:
            try:
                tail.give_back()
                tail.sync()
            except BaseException:
                self.failed = True
                raise
        return tail

    def _continue_last(self) -> None:
        """Open the last segment for more chunks: one that was not ended, or that ended otherwise than by its seal."""
        last = self._segments[-1]
        kinds = [e["edit"] for e in self._manifest.edits if e.get("segment") == last.name]
        if "seal" in kinds:
            raise LogError(f"{self.directory}/{last.name} is sealed, and chunks of it were sent")
        tail = opened_tail(self._files, f"{self.directory}/{last.name}", last.stop, last.end_lsn)
        if last.is_done:
            # Without this edit a recovery scans the segment: before the first byte is added to it.
            kept = [*self._segments[:-1], last._replace(is_done=False)]
            self._rewrite(kept, self.next_lsn)
            self._names.drop_from_queue([last])
        self._segments.pop()
        self._tail = tail

    def _end_tail(self) -> None:
        """The tail is finished, sealed or not. raises: OSError"""
        self.sync()
        tail = self._tail
        if tail is not None:
            tail.give_back()
            if tail.is_dirty:
                tail.sync()
            self._finish("end")

    def _finish(self, kind: str) -> None:
        tail = self._tail
        assert tail is not None
        state = self._state_of(tail)._replace(is_done=True)
        self._manifest.add({"edit": kind, "segment": state.name, "end_lsn": state.end_lsn, "stop": state.stop})
        tail.close()
        self._tail = None
        self._segments.append(state)
        self._names.add_to_queue(state)

    def _carry_out(self, plan: CutPlan, shortened: TailSegment | None) -> None:
        """In an order that leaves a prefix of the log at every step. raises: OSError"""
        lost = [*plan.dropped, *([plan.cut] if plan.cut is not None else [])]
        self._names.cut(plan.end_lsn, plan.first_lsn, lost)
        if plan.trimmed:
            self._names.cover(plan.trimmed, plan.first_lsn)
        if lost or plan.trimmed or plan.first_lsn > self.first_lsn or self.doubt:
            self._rewrite(plan.kept, plan.end_lsn, plan.first_lsn, plan.trimmed)
        for state in reversed(plan.dropped):
            remove_segments(self._files, [f"{self.directory}/{state.name}"])
        if shortened is not None:
            shortened.is_ragged = True
            shortened.give_back()
            shortened.sync()
        self._remove(plan.trimmed)
        self._segments, self._tail = list(plan.kept), None
        self.first_lsn = plan.first_lsn
        self.next_lsn = self.synced_lsn = plan.end_lsn
        self.committed_lsn = max(self.committed_lsn, self.first_lsn)
        if shortened is not None:
            self._segments.pop()
            self._tail = shortened
        elif self._segments and not self._segments[-1].is_done:
            self._continue_last()
            if self._tail is not None and self._tail.is_ragged:
                self._tail.give_back()
                self._tail.sync()
        self._names.queue(self._segments)

    def _begin_at(self, first_lsn: int) -> None:
        """Without a segment: as a new copy. The topics come with the segments. raises: OSError"""
        self._rewrite([], first_lsn, first_lsn)
        self._names.forget(first_lsn)
        self.first_lsn = self.next_lsn = self.synced_lsn = self.committed_lsn = first_lsn

    def _rewrite(
        self,
        kept: list[SegmentState],
        end_lsn: int,
        first_lsn: int | None = None,
        trimmed: Sequence[SegmentState] = (),
    ) -> None:
        """trimmed: segments below first_lsn that are removed next, or at the next start"""
        first_lsn = self.first_lsn if first_lsn is None else first_lsn
        gone: list[Edit] = [
            {"edit": "end", "segment": one.name, "end_lsn": one.end_lsn, "stop": one.stop} for one in trimmed
        ]
        self._manifest.rewrite(edits_of(self._manifest.edits, kept, first_lsn, end_lsn) + gone)

    def _remove(self, states: list[SegmentState]) -> None:
        if states:
            remove_segments(self._files, [f"{self.directory}/{state.name}" for state in states])
