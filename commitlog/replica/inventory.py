"""The segments of a partition that nobody writes now, each with its valid end.

docs/reference/log-format.md, "Recovery".
What recovery would find, in the terms of a copy: only the records that follow each other without a hole count, and
whatever says that there were more is a doubt about the copy. Reads only, but for the sync of what it scanned."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.disk.files import Files
from commitlog.format.directory import FoundSegment, listing
from commitlog.format.manifest import Edit, Manifest
from commitlog.format.tail_scan import examine, whole_prefix
from commitlog.index.segments import SegmentFile


class SegmentState(NamedTuple):
    """A segment. name: of its file; end_lsn, stop: the lsn and the byte behind its last whole chunk
    is_done: sealed or abandoned, as far as this copy knows
    salt: of the file, which a packed one does not share with the one before; bytes are compared only of files with one
    salt. 0: an earlier version does not say"""

    name: str
    base_lsn: int
    end_lsn: int
    stop: int
    is_done: bool
    salt: int = 0


class CopySurvey(NamedTuple):
    """segments: in order; first_lsn: the log has nothing below
    found: edits that the manifest lacks: of segments that were scanned; leftover: files that a removal left
    doubt: why this copy may lack records that it had acknowledged; "": it does not"""

    segments: list[SegmentState]
    first_lsn: int
    found: list[Edit]
    leftover: list[str]
    doubt: str


def inventory(files: Files, directory: str, stream: str, number: int) -> list[SegmentState]:
    """The segments of a partition in order; none where there is no directory.

    raises: OSError, FormatTooNew; cost: a header a segment, and a scan of those that the manifest does not end"""
    if not files.exists(directory):
        return []
    return survey(files, directory, Manifest(files, directory).load(), stream, number).segments


def states_of(segments: list[SegmentFile], directory: str, next_lsn: int, position: int) -> list[SegmentState]:
    """The same of a partition that this process writes. next_lsn, position: where its active segment ends"""
    found = []
    for segment in segments:
        name, end_lsn = segment.path.removeprefix(f"{directory}/"), segment.end_lsn
        if end_lsn is None:
            found.append(SegmentState(name, segment.base_lsn, next_lsn, position, False, segment.salt))
        else:
            stop = segment.logical_end
            found.append(SegmentState(name, segment.base_lsn, end_lsn, stop, True, segment.salt))
    return found


def survey(files: Files, directory: str, edits: list[Edit], stream: str, number: int) -> CopySurvey:
    """edits: of the manifest. raises: OSError, FormatTooNew"""
    listed = listing(files, directory, edits, stream, number)
    doubts = [f"{path}: {why}" for path, why in listed.unreadable]
    first = listed.segments[0].base_lsn if listed.segments else 0
    first_lsn = reached = first if listed.first_lsn is None else listed.first_lsn
    states: list[SegmentState] = []
    found: list[Edit] = []
    last = len(listed.segments) - 1
    for at, one in enumerate(listed.segments):
        if one.base_lsn != reached:
            doubts.append(f"no segment has {reached} to {one.base_lsn}")
        if one.edit is not None:
            state = finished(one, doubts)
        else:
            state, edit = scanned(files, one, doubts, is_last=at == last)
            found += [edit] if edit is not None else []
        states.append(state)
        reached = state.end_lsn
    if listed.ended_lsn > reached:
        doubts.append(f"no segment has {reached} to {listed.ended_lsn}, which the manifest knows")
    leftover = [f"{directory}/{edit['segment']}" for edit in listed.leftover]
    return CopySurvey(states, first_lsn, found, leftover, "; ".join(doubts))


def finished(one: FoundSegment, doubts: list[str]) -> SegmentState:
    """Of a segment with an edit."""
    assert one.edit is not None
    end_lsn, stop = one.edit["end_lsn"], one.edit["stop"]
    if one.size < stop:
        doubts.append(f"{one.path} has {one.size} bytes, and ended at {stop}")
    if one.limit_lsn is not None:
        end_lsn = min(end_lsn, one.limit_lsn)
    return SegmentState(name_of(one), one.base_lsn, max(end_lsn, one.base_lsn), stop, True, one.opening.header.salt)


def scanned(files: Files, one: FoundSegment, doubts: list[str], *, is_last: bool) -> tuple[SegmentState, Edit | None]:
    """Of a segment without an edit; the edit, if it is finished."""
    salt, name = one.opening.header.salt, name_of(one)
    handle = files.open(one.path)
    try:
        tail = examine(files, handle, one.path, salt, one.size, one.base_lsn, one.limit_lsn)
        end_lsn, stop = tail.end_lsn, tail.logical_end
        if tail.gaps:
            # What is behind the damage is no prefix of anything; whoever has all of it sends it again.
            doubts += [f"{gap.why}: {gap.base_lsn} to {gap.next_lsn} cannot be read" for gap in tail.gaps]
            whole = whole_prefix(files, handle, salt, one.size, one.base_lsn, one.limit_lsn)
            end_lsn, stop = whole.end_lsn, whole.stop
        files.sync(handle)  # after a kill it may be in the page cache only
    finally:
        files.close(handle)
    is_done = tail.sealed or not is_last
    state = SegmentState(name, one.base_lsn, end_lsn, stop, is_done, salt)
    if not is_done or tail.gaps:
        return state, None
    kind = "seal" if tail.sealed else "end"
    return state, {"edit": kind, "segment": name, "end_lsn": end_lsn, "stop": stop, "salt": salt}


def name_of(one: FoundSegment) -> str:
    return one.path.rpartition("/")[2]
