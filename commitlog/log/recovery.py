"""Recover a partition after any kind of stop: find segments, their ends, damage.

docs/reference/log-format.md, "Recovery".
No data file is modified here. A tail that cannot have been acknowledged is ignored, beyond the segment's logical end;
everything else stays, and its unreadable records are a gap with its exact range."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commitlog.chunk import Gap
from commitlog.disk.clock_guard import Jump, caught_up
from commitlog.disk.files import Files
from commitlog.disk.preallocation import data_end
from commitlog.format.directory import FoundSegment, SegmentListing, listing
from commitlog.format.manifest import Edit, Manifest, clock_edit
from commitlog.format.segment import BESIDE
from commitlog.format.tail_scan import examine
from commitlog.index.dictionary import maybe_snapshot, take_offsets
from commitlog.index.index import load_places, maybe_index, read_segment
from commitlog.index.index_builder import Index
from commitlog.index.segments import SegmentFile
from commitlog.names.publisher_names import PublisherNames

if TYPE_CHECKING:  # a broker alone knows of no tail
    from commitlog.format.known_tail import KnownTail


@dataclass
class Recovered:
    """The findings at the opening of a partition.

    torn_bytes: after the last whole chunk, never acknowledged; clean: every segment had been sealed
    gaps: lost records that were not reported before; known_gaps: those that were
    short: records beyond the end of files that are shorter than when sealed; found again at each start
    unpacked: files that have not taken the place of their segments: packed ones, and those of a refill
    longer: (path, stop, size) of segments that have bytes behind their end
    starts: (epoch, lsn): where each writer began that has segments here
    unreadable: wholly unreadable files; repaired: damage without loss
    """

    next_lsn: int = 0
    first_lsn: int = 0
    torn_bytes: int = 0
    clean: bool = True
    gaps: list[Gap] = field(default_factory=list)
    known_gaps: list[Gap] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    short: list[Gap] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    segments: list[SegmentFile] = field(default_factory=list)
    longer: list[tuple[str, int, int]] = field(default_factory=list)
    leftover: list[str] = field(default_factory=list)
    unpacked: list[str] = field(default_factory=list)
    topic_names: list[bytes] = field(default_factory=list)
    next_offsets: array[int] = field(default_factory=lambda: array("Q"))
    publishers: PublisherNames = field(default_factory=lambda: PublisherNames({}, 1))
    last_ts: int = 0
    epoch: int = 1
    starts: list[tuple[int, int]] = field(default_factory=list)
    snapshot_lsn: int = -1
    jumps: list[Jump] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)


def recover(
    files: Files, directory: str, manifest: Manifest, stream: str, number: int, now_us: int,
    tail: KnownTail | None = None,
) -> Recovered:  # fmt: skip
    """Scan a partition's directory. tail: what this process has read, written and synced of the last segment

    raises: OSError, FormatTooNew"""
    found = Recovered()
    edits = manifest.load()
    found.known_gaps = [Gap(e["base_lsn"], e["next_lsn"], e["why"]) for e in edits if e["edit"] == "gap"]
    for edit in edits:
        if edit["edit"] == "clock":
            found.jumps = [Jump(*jump) for jump in edit["jumps"]]
    listed = listing(files, directory, edits, stream, number)
    found.leftover = [f"{directory}/{edit['segment']}" for edit in listed.leftover]
    found.unpacked = [f"{directory}/{name}" for name in files.names(directory) if name.endswith(BESIDE)]
    found.unreadable = [f"{path}: {why}" for path, why in listed.unreadable]
    first = listed.segments[0].base_lsn if listed.segments else 0
    found.first_lsn = found.next_lsn = first if listed.first_lsn is None else listed.first_lsn
    load_snapshot(files, directory, found)
    for one in listed.segments:
        add_segment(files, one, found, tail if one is listed.segments[-1] else None)
    conclude(listed, found, now_us)
    for segment in () if found.last_ts else reversed(found.segments):
        places = load_places(files, segment.path, segment.end_lsn or 0, segment.logical_end)
        if places:
            found.last_ts = places[-1].last_ts
            break
    return found


def load_snapshot(files: Files, directory: str, found: Recovered) -> None:
    snapshot = maybe_snapshot(files, directory)
    if snapshot is not None:
        found.snapshot_lsn = snapshot.lsn
        found.topic_names, found.next_offsets = snapshot.topics, snapshot.offsets
        found.publishers = PublisherNames(snapshot.publishers, snapshot.publishers_end)


def add_segment(files: Files, listed: FoundSegment, found: Recovered, tail: KnownTail | None = None) -> None:
    segment = SegmentFile(listed.path, listed.base_lsn, listed.opening.header.salt, listed.opening.first_ts)
    epoch = listed.opening.header.epoch
    found.epoch = max(found.epoch, 1 + epoch)
    if not found.starts or found.starts[-1][0] != epoch:
        found.starts.append((epoch, listed.base_lsn))
    if listed.opening.damage is not None:
        found.repaired.append(str(listed.opening.damage))
    if listed.base_lsn > found.next_lsn:
        report_gap(found, Gap(found.next_lsn, listed.base_lsn, f"no segment before {listed.path} has them"))
    edit = listed.edit
    known = tail if edit is None and tail is not None and is_of(tail, listed) else None
    if known is not None:
        found.clean = False
        edit = {
            "edit": "end", "segment": known.name, "end_lsn": known.end_lsn, "stop": known.stop, "salt": segment.salt,
        }  # fmt: skip
    elif edit is None:
        edit = scan_tail(files, listed, found)
    found.edits.append(edit)
    if listed.size > edit["stop"]:
        found.longer.append((listed.path, edit["stop"], listed.size))
    end_lsn = edit["end_lsn"] if listed.limit_lsn is None else min(edit["end_lsn"], listed.limit_lsn)
    segment.end_lsn, segment.logical_end, segment.sealed = (
        max(end_lsn, segment.base_lsn),
        edit["stop"],
        edit["edit"] == "seal",
    )
    if listed.edit is not None and listed.size < edit["stop"]:
        found.short.append(cut_short(files, listed, segment.end_lsn, edit["stop"]))
    segment.indexed = True
    if known is not None:
        add_known(known, found)
        segment.indexed = False
    elif segment.end_lsn > found.snapshot_lsn:
        index = maybe_index(files, segment.path, segment.end_lsn, segment.logical_end)
        if index is None:
            index = read_segment(files, segment.path, segment.logical_end)
            segment.indexed = False
        add_index(index, found)
        found.last_ts = index.places[-1].last_ts if index.places else found.last_ts
    found.segments.append(segment)
    found.next_lsn = max(found.next_lsn, segment.end_lsn)


def cut_short(files: Files, listed: FoundSegment, end_lsn: int, stop: int) -> Gap:
    """The records lost from a finished segment that is shorter than the manifest says."""
    places = load_places(files, listed.path, end_lsn, stop)
    lost = next((p.base_lsn for p in places if p.position + p.total_len > listed.size), None)
    first = lost if lost is not None else places[-1].next_lsn if places else listed.base_lsn
    return Gap(min(first, end_lsn), end_lsn, f"{listed.path} has {listed.size} bytes, and was sealed with {stop}")


def scan_tail(files: Files, listed: FoundSegment, found: Recovered) -> Edit:
    """Find the end of a segment without an edit; returns the edit for it."""
    handle = files.open(listed.path)
    try:
        tail = examine(
            files,
            handle,
            listed.path,
            listed.opening.header.salt,
            listed.size,
            listed.base_lsn,
            listed.limit_lsn,
        )
        files.sync(handle)  # after a kill the tail may be in the page cache only
        torn_bytes = data_end(files, handle, tail.logical_end, listed.size) - tail.logical_end
    finally:
        files.close(handle)
    name = listed.path.rpartition("/")[2]
    for gap in tail.gaps:
        report_gap(found, gap)
    if not tail.sealed:
        found.clean = False
        found.torn_bytes += torn_bytes
    return {
        "edit": "seal" if tail.sealed else "end", "segment": name, "end_lsn": tail.end_lsn, "stop": tail.logical_end,
        "salt": listed.opening.header.salt,
    }  # fmt: skip


def conclude(listed: SegmentListing, found: Recovered, now_us: int) -> None:
    """Report records lost after the last segment, and build the edits of the new manifest."""
    for known in (listed.ended_lsn, found.snapshot_lsn):
        if known > found.next_lsn:
            report_gap(found, Gap(found.next_lsn, known, "no segment has them"))
            found.next_lsn = known
    kept = [gap for gap in (*found.known_gaps, *found.gaps) if gap.next_lsn > found.first_lsn]
    first: list[Edit] = [{"edit": "first", "lsn": found.first_lsn}]
    gaps: list[Edit] = [
        {"edit": "gap", "base_lsn": gap.base_lsn, "next_lsn": gap.next_lsn, "why": gap.why} for gap in kept
    ]
    # A jump matters only to records before it.
    oldest = next((segment.first_ts for segment in found.segments if segment.first_ts), 0)
    found.jumps = [jump for jump in caught_up(found.jumps, now_us) if jump.before_us >= oldest]
    jumps = [clock_edit(found.jumps)] if found.jumps else []
    found.edits = first + listed.leftover + found.edits + gaps + jumps


def report_gap(found: Recovered, gap: Gap) -> None:
    """Report a gap, unless it was reported in an earlier run."""
    known = any(k.base_lsn <= gap.base_lsn and gap.next_lsn <= k.next_lsn for k in found.known_gaps)
    if not known:
        found.gaps.append(gap)


def is_of(tail: KnownTail, listed: FoundSegment) -> bool:
    """Whether it is what is known of this segment, and nothing says more of it."""
    is_last = listed.limit_lsn is None and listed.opening.damage is None
    return is_last and listed.path.rpartition("/")[2] == tail.name and listed.size >= tail.stop


def add_known(tail: KnownTail, found: Recovered) -> None:
    """Add the names of the last segment, and the next offset of each topic."""
    offsets = found.next_offsets
    offsets.frombytes(bytes(8 * max(0, len(tail.following) - len(offsets))))
    for topic_id, following in enumerate(tail.following):
        if following > offsets[topic_id]:
            offsets[topic_id] = following
    add_names(tail.names, tail.publishers, found)
    found.last_ts = tail.last_ts or found.last_ts


def add_index(index: Index, found: Recovered) -> None:
    """Add an index's names, and the next offset of each topic."""
    take_offsets(index, found.next_offsets)
    add_names(index.names, index.publishers, found)


def add_names(topics: dict[int, bytes], publishers: dict[int, bytes], found: Recovered) -> None:
    names, offsets = found.topic_names, found.next_offsets
    more = max(len(offsets), 1 + max(topics, default=-1))
    offsets.frombytes(bytes(8 * (more - len(offsets))))
    names.extend([b""] * (more - len(names)))
    for topic_id, name in topics.items():
        names[topic_id] = name
    found.publishers.learn(publishers)
