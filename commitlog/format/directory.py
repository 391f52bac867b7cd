"""List the segments in a partition's directory in the order they were written. docs/reference/log-format.md, "Reading".

Used by recovery and by readers; writes nothing."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.disk.files import Files
from commitlog.errors import Damaged
from commitlog.format.manifest import Edit, end_of, ends_of
from commitlog.format.segment import SEGMENT_HEADER_BYTES, SegmentStart, opening


class FoundSegment(NamedTuple):
    """One segment file. limit_lsn: where the next segment begins, which has everything from there on."""

    path: str
    size: int
    opening: SegmentStart
    edit: Edit | None
    limit_lsn: int | None

    @property
    def base_lsn(self) -> int:
        return self.opening.header.base_lsn


class SegmentListing(NamedTuple):
    """first_lsn: None without a manifest; leftover: edits of segments below it whose files still exist;
    unreadable: (path, why) of wholly unreadable segments; ended_lsn: the highest end in any edit."""

    first_lsn: int | None
    segments: list[FoundSegment]
    leftover: list[Edit]
    unreadable: list[tuple[str, str]]
    ended_lsn: int


def listing(files: Files, directory: str, edits: list[Edit], stream: str, number: int) -> SegmentListing:
    """Compare the files with the manifest's edits. raises: OSError, FormatTooNew"""
    first_lsn = max((e["lsn"] for e in edits if e["edit"] == "first"), default=None)
    known = ends_of(edits)
    names = [name for name in files.names(directory) if name.endswith(".seg") and name[:20].isdigit()]
    leftover: list[Edit] = []
    unreadable: list[tuple[str, str]] = []
    openings: list[tuple[SegmentStart, str, int]] = []
    for name in names:
        path, ends = f"{directory}/{name}", known.get(name, [])
        if int(name[:20]) < (first_lsn or 0):
            # A foreign file that the manifest does not know stays, and is ignored.
            leftover += ends[-1:]
            continue
        try:
            size = files.size(path)
            found = open_and_look(files, path)
        except FileNotFoundError:
            continue  # retention removed it meanwhile
        except Damaged as damage:
            # A power loss during the creation of a segment leaves at most its header.
            if ends or size > SEGMENT_HEADER_BYTES:
                unreadable.append((path, damage.what))
            continue
        header = found.header
        if header.partition >= 0 and (header.stream, header.partition) != (stream, number):
            unreadable.append((path, f"it belongs to {header.stream}/p{header.partition}"))
        else:
            openings.append((found, path, size))
    openings.sort(key=lambda o: o[0].header.order)
    segments = []
    for at, (found, path, size) in enumerate(openings):
        following = openings[at + 1][0].header.base_lsn if at + 1 < len(openings) else None
        edit = end_of(known.get(path.rpartition("/")[2], []), found.header.salt)
        segments.append(FoundSegment(path, size, found, edit, following))
    last_lsn = max((s.base_lsn for s in segments), default=-1)
    dropped = {e["segment"] for e in edits if e["edit"] == "drop"} | set(known) | set(names)
    for edit in edits:
        if edit["edit"] == "open" and edit["segment"] not in dropped and edit["base_lsn"] > last_lsn:
            unreadable.append((f"{directory}/{edit['segment']}", "it is missing, and its records are unknown"))
    ended = [ends[-1]["end_lsn"] for ends in known.values()] + [e["next_lsn"] for e in edits if e["edit"] == "gap"]
    return SegmentListing(first_lsn, segments, leftover, unreadable, max([first_lsn or 0, *ended]))


def open_and_look(files: Files, path: str) -> SegmentStart:
    handle = files.open(path)
    try:
        return opening(files, handle, path)
    finally:
        files.close(handle)
