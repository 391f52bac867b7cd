"""Check every meaningful byte of a data directory, from another process. docs/reference/log-format.md.

Checks every CRC, the chain of chunk headers, that lsns and topic offsets are dense, that each index agrees with its
segment, and manifest and snapshot. Takes no lock, writes nothing, and does not interpret messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from commitlog.chunk import HEADER_BYTES, SEAL, Header, decode_aux, maybe_header, split_body
from commitlog.disk.files import Files, whole_file
from commitlog.errors import Damaged
from commitlog.format.manifest import ENDS, bad_lines, decode_edits
from commitlog.format.manifest import NAME as MANIFEST
from commitlog.format.segment import HOLDS_RECORDS, SEGMENT_HEADER_BYTES, body_fault, probe, read_header, salt_now
from commitlog.index.dictionary import SNAPSHOT, decode_snapshot
from commitlog.index.index import encode_index, index_path, read_segment
from commitlog.index.segment_view import SegmentView
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """A problem.

    severity: "error": records are unreadable or wrong; "warning": damage that is repaired from the segments; "note":
    normal remains of a kill
    where: file and byte; base_lsn, next_lsn: the records concerned, equal if there are none
    """

    severity: Severity
    partition: str
    where: str
    what: str
    base_lsn: int
    next_lsn: int


def verify(files: Files, root: str) -> Iterator[Finding]:
    """Check everything; yields nothing if all is sound. Reads every byte once; a broker may run.

    raises: FileNotFoundError if there is no data directory
    """
    for view in LogReader(files, root).partitions(internal=True):
        yield from PartitionCheck(files, view).run()


def verify_segment(files: Files, view: PartitionView, path: str) -> Iterator[Finding]:
    """Check the CRCs of one segment of a view, not its rows; nothing when it was removed."""
    for segment in view.segments():
        if segment.path == path:
            check = PartitionCheck(files, view, expected=segment.base_lsn)
            yield from SegmentCheck(check, segment, rows=False).run()


@dataclass
class PartitionCheck:
    """One partition. expected: the lsn that must come next; offsets: topic id -> its next offset."""

    files: Files
    view: PartitionView
    expected: int = 0
    last_ts: int = 0
    offsets: dict[int, int] = field(default_factory=dict)

    def run(self) -> Iterator[Finding]:
        yield from self._manifest()
        yield from self._snapshot()
        self.expected = self.view.first_lsn
        for problem in self.view.unreadable:
            yield self.found("error", self.view.directory, problem)
        for segment in self.view.segments():
            if segment.base_lsn > self.expected:
                missing = self.expected, segment.base_lsn
                self.offsets.clear()
                yield self.found("error", segment.path, "records before it are missing", *missing)
            self.expected = segment.base_lsn
            yield from SegmentCheck(self, segment).run()
            self.expected = max(self.expected, segment.end_lsn)

    def found(
        self, severity: Severity, where: str, what: str, base_lsn: int | None = None, next_lsn: int = 0
    ) -> Finding:
        base = self.expected if base_lsn is None else base_lsn
        return Finding(severity, self.view.name, where, what, base, max(base, next_lsn))

    def _manifest(self) -> Iterator[Finding]:
        path = f"{self.view.directory}/{MANIFEST}"
        if not self.files.exists(path):
            yield self.found("warning", path, "the manifest is missing")
            return
        present = set(self.files.names(self.view.directory))
        raw = whole_file(self.files, path)
        for line in bad_lines(raw):
            yield self.found("warning", path, f"line {line} does not match its checksum")
        if raw and not raw.endswith(b"\n"):
            yield self.found("note", path, "the last line is torn")
        edits = decode_edits(raw)
        # Listed twice: a segment may be removed before the manifest is read, and another created after.
        present |= set(self.files.names(self.view.directory))
        first = max([self.view.first_lsn, *(edit["lsn"] for edit in edits if edit["edit"] == "first")])
        for edit in edits:
            if edit["edit"] in ENDS and edit["end_lsn"] > first and edit["segment"] not in present:
                base = int(edit["segment"][:20])
                if base < edit["end_lsn"]:
                    yield self.found("error", path, f"{edit['segment']} is gone", base, edit["end_lsn"])
            if edit["edit"] == "gap" and edit["next_lsn"] > first:
                lost = edit["base_lsn"], edit["next_lsn"]
                yield self.found("error", path, f"known to be lost: {edit['why']}", *lost)

    def _snapshot(self) -> Iterator[Finding]:
        path = f"{self.view.directory}/{SNAPSHOT}"
        if self.files.exists(path) and decode_snapshot(whole_file(self.files, path)) is None:
            yield self.found("warning", path, "the snapshot does not match its checksum")


@dataclass
class SegmentCheck:
    """One segment: from its first chunk to the last that counts. rows: check each, and the index, too."""

    partition: PartitionCheck
    segment: SegmentView
    rows: bool = True
    chain: int | None = 0  # None: the chunk before could not be read
    names: set[int] = field(default_factory=set)
    publishers: set[int] = field(default_factory=lambda: {0})
    sealed: bool = False
    damaged: bool = False  # the unreadable part may contain the name

    def run(self) -> Iterator[Finding]:
        files, path = self.partition.files, self.segment.path
        try:
            handle = files.open(path)
        except FileNotFoundError:
            self._lose()  # retention removed it meanwhile
            return
        try:
            self._packed(handle)
            try:
                read_header(files, handle, path)
            except Damaged as damage:
                yield self._at(0, "warning", f"{damage.what}; its fields come from the first chunk")
            yield from self._chunks(handle)
        finally:
            files.close(handle)
        if self.segment.sealed and not self.sealed:
            yield self._at(self.segment.bytes, "warning", "it is called sealed, but no SEAL chunk ends it")
        if self.rows:
            yield from self._index()

    def _packed(self, handle: int) -> None:
        """Check what has taken the place of the segment since the view was made."""
        files, path = self.partition.files, self.segment.path
        salt = salt_now(files, handle, path, self.segment.salt)
        if salt != self.segment.salt:
            size = files.size(path)
            end = maybe_header(files.read(handle, size - HEADER_BYTES, HEADER_BYTES), salt)
            # When it was listed it may have been written to: then it has more now.
            end_lsn = self.segment.end_lsn if end is None else end.base_lsn
            self.segment = replace(
                self.segment, salt=salt, sealed=True, bytes=size, logical_end=size, end_lsn=end_lsn
            )  # fmt: skip

    def _is_packed_now(self) -> bool:
        """Whether the segment was replaced while it was checked."""
        files, path = self.partition.files, self.segment.path
        try:
            handle = files.open(path)
        except FileNotFoundError:
            return True
        try:
            return salt_now(files, handle, path, self.segment.salt) != self.segment.salt
        finally:
            files.close(handle)

    def _at(self, position: int, severity: Severity, what: str, base: int | None = None, end: int = 0) -> Finding:
        return self.partition.found(severity, f"{self.segment.path}:{position}", what, base, end)

    def _chunks(self, handle: int) -> Iterator[Finding]:
        files, segment, state = self.partition.files, self.segment, self.partition
        position = SEGMENT_HEADER_BYTES
        while position < segment.logical_end:
            header = maybe_header(files.read(handle, position, HEADER_BYTES), segment.salt)
            if header is None or position + header.total_len > segment.logical_end:
                following = next(probe(files, handle, segment.salt, position, segment.logical_end), None)
                yield from self._hole(position, following)
                if following is None:
                    return
                state.expected, self.chain = max(following[1].base_lsn, state.expected), None
                position = following[0]
                continue
            rest = files.read(handle, position + HEADER_BYTES, header.total_len - HEADER_BYTES)
            body, padding = rest[: header.body_len], rest[header.body_len :]
            fault = body_fault(header, body)
            if fault is not None and header.next_lsn > segment.end_lsn:
                yield from self._hole(position, None)
                return
            yield from self._header(position, header)
            if padding.count(0) != len(padding):
                yield self._at(position, "warning", "the padding of a chunk is not zero: the disk changed it")
            if fault is not None:
                self._lose()
                lost = header.base_lsn, header.next_lsn
                yield self._at(position, "error", f"a chunk is damaged: {fault}", *lost)
            elif self.rows:
                yield from self._body(position, header, body)
            self.chain = header.crc
            self.sealed = header.kind == SEAL
            state.expected = max(state.expected, header.next_lsn)
            position += header.total_len

    def _hole(self, position: int, following: tuple[int, Header] | None) -> Iterator[Finding]:
        """Bytes that are no chunk: damage if records follow, or must have been there."""
        state, segment = self.partition, self.segment
        end = following[1].base_lsn if following is not None else segment.end_lsn
        if end > state.expected or following is not None:
            yield self._at(position, "error", "no chunk can be read here", state.expected, end)
            self._lose()
        elif not state.view.held:
            size = segment.bytes - position
            yield self._at(position, "note", f"{size} bytes behind the last whole chunk do not count")

    def _lose(self) -> None:
        """A chunk is lost: topics may continue at any offset, and names may be missing."""
        self.damaged = True
        self.partition.offsets.clear()

    def _header(self, position: int, header: Header) -> Iterator[Finding]:
        state = self.partition
        lsns = header.base_lsn, header.next_lsn
        if self.chain is not None and header.chain != self.chain:
            yield self._at(position, "error", "the chunk before it is not the one it was written behind", *lsns)
        if header.base_lsn != state.expected:
            what = f"lsn {header.base_lsn} where {state.expected} must come"
            yield self._at(position, "error", what, *sorted((header.base_lsn, state.expected)))
        if header.kind in HOLDS_RECORDS and header.count:
            if header.base_ts < state.last_ts:
                yield self._at(position, "error", "its time is before that of the chunk before", *lsns)
            state.last_ts = max(state.last_ts, header.base_ts)
        if header.durable_lsn > header.next_lsn:
            yield self._at(
                position, "error", f"calls lsn {header.durable_lsn} durable, which was appended later", *lsns
            )

    def _body(self, position: int, header: Header, body: bytes) -> Iterator[Finding]:
        rows, _, aux = split_body(header, body)
        found = decode_aux(aux)
        self.names.update(number for number, _, _ in found.topics)
        self.publishers.update(number for number, _ in found.publishers)
        words = rows.cast("I")
        late = 0
        wrong: set[str] = set()
        for row in range(header.count):
            at = row * 8
            topic_id, offset = words[at], words[at + 2] | words[at + 3] << 32
            expected = self.partition.offsets.get(topic_id)
            if expected is not None and offset != expected:
                wrong.add(f"topic {topic_id} goes from offset {expected} to {offset}")
            self.partition.offsets[topic_id] = offset + 1
            if not self.damaged and topic_id not in self.names:
                wrong.add(f"topic {topic_id} has no name in this segment")
            if not self.damaged and words[at + 6] not in self.publishers:
                wrong.add(f"publisher {words[at + 6]} has no name in this segment")
            if words[at + 4] < late:
                wrong.add("time runs backwards in it")
            late = words[at + 4]
        for what in sorted(wrong):
            yield self._at(position, "error", what, header.base_lsn, header.next_lsn)

    def _index(self) -> Iterator[Finding]:
        files, segment = self.partition.files, self.segment
        path = index_path(segment.path)
        if self.damaged or not files.exists(path):
            return  # made at the next seal or start
        try:
            index, said = read_segment(files, segment.path, segment.logical_end), whole_file(files, path)
        except FileNotFoundError:
            return  # retention removed it, or packing replaced it, meanwhile
        if said != encode_index(index, segment.end_lsn, segment.logical_end) and not self._is_packed_now():
            yield self.partition.found("warning", path, "it differs from its segment")
