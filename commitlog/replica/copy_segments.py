"""The segments of a copy: what its directory has, and changes of it that leave a prefix of the log at every step.

docs/reference/log-format.md. Blocking. What a leader sends is for `mirror_partition`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from commitlog.disk.files import Files, make_durable_directory, remove_if_possible
from commitlog.errors import LogError, LogFailure
from commitlog.format.directory import open_and_look
from commitlog.format.manifest import ENDS, Edit, Manifest, salted
from commitlog.format.segment import BESIDE, SegmentHeader
from commitlog.replica.cut_plan import CutPlan, edits_of
from commitlog.replica.inventory import SegmentState, survey
from commitlog.replica.replica_names import ReplicaNames
from commitlog.replica.tail.refill import Refill
from commitlog.replica.tail.tail_segment import TailSegment, opened_tail, stop_before
from commitlog.write.retention import remove_segments

SEGMENT_BYTES_MAX = 64 << 20


class CopySegments:
    """next_lsn: behind its last chunk; synced_lsn: everything below is synced; committed_lsn: as the caller was told
    doubt: why this copy may lack what it had acknowledged, until it is cut

    After an OSError the copy is `failed`: nothing is known of what was written, and it must be opened anew."""

    def __init__(
        self, files: Files, directory: str, stream: str, number: int, *,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> None:  # fmt: skip
        """Open or create a copy that nobody else writes. segment_bytes_max: about what the leader's segments have

        raises: OSError, FormatTooNew; cost: as `inventory`"""
        self._files, self.directory = files, directory
        self._identity = stream, number
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
        self._refill: Refill | None = None  # of the last segment, while it is sent again
        self.next_lsn = found.segments[-1].end_lsn if found.segments else found.first_lsn
        self.synced_lsn, self.committed_lsn = self.next_lsn, self.first_lsn
        self._names = ReplicaNames(files, directory, self.first_lsn)
        is_empty = not (found.segments or found.doubt)
        if is_empty and self._names.lsn > self.first_lsn:  # it was about to begin anew
            self._names.forget(self.first_lsn)
        remove_segments(files, found.leftover)
        for name in files.names(directory):
            if name.endswith(BESIDE):
                remove_if_possible(files, f"{directory}/{name}")
        # An edit without a salt is true of any file, also of one that takes the place of what it meant.
        is_unsalted = any(edit["edit"] in ENDS and "salt" not in edit for edit in edits)
        edits = salted(edits, {each.name: each.salt for each in found.segments})
        if found.found or is_unsalted or len(edits) > 2 * len(found.segments) + 8:
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
    def is_refilling(self) -> bool:
        """Whether the last segment is being sent again; when that is over, another file is there."""
        return self._refill is not None

    @property
    def reached(self) -> tuple[str, int]:
        """As `tail`, of what was sent: while the last segment is sent again, of the file that is written beside it."""
        refill = self._refill
        return self.tail if refill is None or not refill.is_begun else (refill.name, refill.position)

    @property
    def lacks_names(self) -> bool:
        """It begins behind records that are removed, and has not been sent their topics yet: an owner who began with it
        would count the topics' offsets anew."""
        return self.first_lsn > self._names.saved_lsn and self.first_lsn > 0 and self.tail == ("", 0)

    def _state_of(self, tail: TailSegment) -> SegmentState:
        header = tail.header
        return SegmentState(tail.name, header.base_lsn, self.next_lsn, tail.position, tail.is_sealed, header.salt)

    def sync(self) -> None:
        """What was written since the last one is on disk then, and may be acknowledged. raises: OSError"""
        self._check()
        if self._refill is not None:
            with self._changing():
                self._refill.sync()
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

    # Changes

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What raises OSError leaves a copy of which nothing is known. LogError: nothing was changed."""
        try:
            yield
        except LogError:
            raise
        except BaseException:
            self.failed = True
            raise

    def _own_stop(self, name: str, end_lsn: int, stop: int, salt: int) -> int:
        """The byte, as of `cut`, of the file that is here; 0: no chunk ends before this lsn. raises: OSError"""
        for each in self.segments:
            if each.name == name and each.salt not in (0, salt):
                return stop_before(self._files, f"{self.directory}/{name}", each.salt, each.stop, end_lsn)
        return stop

    def _take_refill(self, refill: Refill) -> None:
        """What was sent takes the place of the last segment: it has all of its records. raises: OSError"""
        if self._tail is not None:
            self._tail.close()
            self._tail = None
        else:
            self._names.drop_from_queue([self._segments.pop()])
        self._refill, self._tail = None, refill.take_place()
        self.next_lsn = refill.next_lsn
        self._tail.is_dirty = True  # its end is to be noted, and what `sync` says of it

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
            with self._changing():
                self._continue_last()
        tail = self._tail
        assert tail is not None
        if tail.is_sealed:
            raise LogError(f"{tail.path} is sealed, and chunks for byte {tail.position} of it were sent")
        if tail.is_ragged:
            with self._changing():
                tail.give_back()
                tail.sync()
        return tail

    def _continue_last(self) -> None:
        """Open the last segment for more chunks: one that was not ended, or that ended otherwise than by its seal."""
        last = self._segments[-1]
        edits = [e for e in self._manifest.edits if e.get("segment") == last.name]
        if any(e["edit"] == "seal" and e.get("salt", last.salt) == last.salt for e in edits):
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
        self._manifest.add(end_edit(kind, state))
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
        gone = [end_edit("end", one) for one in trimmed]
        self._manifest.rewrite(edits_of(self._manifest.edits, kept, first_lsn, end_lsn) + gone)

    def _remove(self, states: list[SegmentState]) -> None:
        if states:
            remove_segments(self._files, [f"{self.directory}/{state.name}" for state in states])


def end_edit(kind: str, one: SegmentState) -> Edit:
    return {"edit": kind, "segment": one.name, "end_lsn": one.end_lsn, "stop": one.stop, "salt": one.salt}
