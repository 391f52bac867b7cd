"""Open a partition after any end: what is there, what of it counts, what is damaged. docs/log-format.md, "Recovery".

No data file is modified. A tail that could not have been acknowledged is left behind the segment's logical end;
anything that could have been stays, and what cannot be read of it is a gap with its exact range."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from commitlog.chunk import HEADER_BYTES, SEAL, Gap
from commitlog.errors import Damaged
from commitlog.files import Files
from commitlog.index import Index, index_path, load_index, read_segment
from commitlog.manifest import Manifest
from commitlog.retention import SNAPSHOT, decode_snapshot
from commitlog.segment import (
    HOLDS_RECORDS,
    SEGMENT_HEADER_BYTES,
    Place,
    body_fault,
    probe,
    read_chunk,
    read_header,
    walk,
)
from commitlog.segments import SegmentFile


@dataclass
class Recovered:
    """What opening a partition found. torn_bytes: behind the last whole chunk, never acknowledged."""

    next_lsn: int = 0
    first_lsn: int = 0
    torn_bytes: int = 0
    clean: bool = True
    gaps: list[Gap] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    segments: list[SegmentFile] = field(default_factory=list)
    topic_names: list[bytes] = field(default_factory=list)
    next_offsets: array[int] = field(default_factory=lambda: array("Q"))
    publishers: list[bytes] = field(default_factory=lambda: [b""])
    last_ts: int = 0
    edits: list[dict[str, Any]] = field(default_factory=list)


def recover(files: Files, directory: str, manifest: Manifest) -> Recovered:
    """Look through a partition's directory."""
    found = Recovered()
    edits = manifest.load()
    known = {edit["segment"]: edit for edit in edits if edit["edit"] in ("seal", "end")}
    found.first_lsn = max((edit["lsn"] for edit in edits if edit["edit"] == "first"), default=0)
    found.edits = [edit for edit in edits if edit["edit"] in ("seal", "end", "first", "gap")]
    found.gaps = [Gap(e["base_lsn"], e["next_lsn"], e["why"]) for e in edits if e["edit"] == "gap"]
    load_snapshot(files, directory, found)
    for name in files.names(directory):
        if not name.endswith(".seg"):
            continue
        path = f"{directory}/{name}"
        try:
            take_segment(files, path, known.get(name), found)
        except Damaged as damage:
            # Kept where it is: what cannot be read now may be read by somebody with better tools.
            found.unreadable.append(str(damage))
    if found.segments:
        first = found.segments[0].base_lsn
        if first > found.first_lsn:
            found.gaps.append(Gap(found.first_lsn, first, "no segment has them"))
    return found


def take_segment(files: Files, path: str, edit: dict[str, Any] | None, found: Recovered) -> None:
    handle = files.open(path)
    try:
        size = files.size(path)
        header = read_header(files, handle, path)
        if header.base_lsn < found.first_lsn and edit is not None and edit["end_lsn"] <= found.first_lsn:
            return  # retention took it, and was interrupted before the file went
        segment = SegmentFile(path, header.base_lsn, header.salt)
        segment.size = size
        if header.base_lsn > found.next_lsn and found.segments:
            found.gaps.append(Gap(found.next_lsn, header.base_lsn, "no segment has them"))
        if edit is None:
            edit = examine(files, handle, path, header.salt, size, header.base_lsn, found)
        elif edit["edit"] == "end":
            segment.stop = edit["position"]
    finally:
        files.close(handle)
    segment.end_lsn = edit["end_lsn"]
    if edit["edit"] == "end":
        segment.stop = edit["position"]
        index, _ = read_segment(files, path, segment.stop)
        segment.index = index
        add_found_later(files, segment, edit, index, found)
    else:
        index, _ = load_index(files, path)
    segment.indexed = files.exists(index_path(path)) or segment.stop is not None
    if segment.indexed and segment.stop is None:
        segment.index = None  # read again when it is asked for
    found.segments.append(segment)
    found.next_lsn = max(found.next_lsn, edit["end_lsn"])
    take_index(index, found)


def add_found_later(
    files: Files, segment: SegmentFile, edit: dict[str, Any], index: Index, found: Recovered
) -> None:
    """Chunks that are whole behind a damaged one stay readable; names that stood in the damaged one are in frames."""
    handle = files.open(segment.path)
    try:
        for fields in edit.get("later", []):
            place = Place(*fields)
            index.places.append(place)
            chunk = read_chunk(files, handle, segment.path, segment.salt, place)
            if isinstance(chunk, Gap):
                continue
            words = memoryview(chunk.rows).cast("I")
            for at in range(0, len(words), 8):
                number, offset = words[at], words[at + 2] | words[at + 3] << 32
                if number not in index.names:
                    index.names[number] = topic_of(chunk.frames, words[at + 1])
                first, count, start = index.topics.get(number, (offset, 0, 0))
                # Only the end is used of what is behind the damage: the next offset of the topic.
                index.topics[number] = (first, max(count, offset + 1 - first), start)
    finally:
        files.close(handle)


def topic_of(frames: Any, start: int) -> bytes:
    """The topic of the PUBLISH packet at `start`. MQTT 5.0, 3.3."""
    at = start + 1
    while frames[at] >= 128:
        at += 1
    length = frames[at + 1] << 8 | frames[at + 2]
    return bytes(frames[at + 3 : at + 3 + length])


def examine(
    files: Files, handle: int, path: str, salt: int, size: int, base_lsn: int, found: Recovered
) -> dict[str, Any]:
    """Find the end of a segment that was not sealed; the answer is an edit of the manifest."""
    name = path.rpartition("/")[2]
    position, expected, chain, durable = SEGMENT_HEADER_BYTES, base_lsn, 0, 0
    sealed = False
    for at, header in walk(files, handle, salt, SEGMENT_HEADER_BYTES, size):
        if header.chain != chain or header.base_lsn != expected:
            break
        if header.body_len and body_fault(header, files.read(handle, at + HEADER_BYTES, header.body_len)):
            break
        durable = max(durable, header.durable_lsn)
        chain, expected = header.crc, header.next_lsn
        position = at + header.total_len
        sealed = header.kind == SEAL
    if sealed and position == size:
        edit: dict[str, Any] = {"edit": "seal", "segment": name, "end_lsn": expected}
        found.edits.append(edit)
        return edit
    found.clean = False
    later = [(at, h) for at, h in probe(files, handle, salt, position, size)]
    durable = max([durable, *(h.durable_lsn for _, h in later)])
    edit = {"edit": "end", "segment": name, "position": position, "end_lsn": expected}
    if durable > expected:
        # Something that was acknowledged is damaged: keep every whole chunk behind it, say exactly what is missing.
        kept = [(at, h) for at, h in later if h.kind in HOLDS_RECORDS and h.count and h.base_lsn >= expected]
        edit["later"] = [[h.base_lsn, at, h.base_ts, h.count, h.total_len] for at, h in kept]
        reached = expected
        for _, header in kept:
            if header.base_lsn > reached:
                report(found, Gap(reached, header.base_lsn, f"{name}: damaged on disk"))
            reached = max(reached, header.next_lsn)
        if durable > reached:
            report(found, Gap(reached, durable, f"{name}: damaged on disk"))
            reached = durable
        edit["end_lsn"] = reached
    else:
        found.torn_bytes += size - position
    files.sync(handle)  # after a kill the tail may live in the page cache only
    found.edits.append(edit)
    return edit


def report(found: Recovered, gap: Gap) -> None:
    found.gaps.append(gap)
    found.edits.append({"edit": "gap", "base_lsn": gap.base_lsn, "next_lsn": gap.next_lsn, "why": gap.why})


def load_snapshot(files: Files, directory: str, found: Recovered) -> None:
    path = f"{directory}/{SNAPSHOT}"
    if not files.exists(path):
        return
    handle = files.open(path)
    try:
        snapshot = decode_snapshot(files.read(handle, 0, files.size(path)))
    finally:
        files.close(handle)
    if snapshot is not None:
        found.topic_names, found.next_offsets, _ = snapshot


def take_index(index: Index, found: Recovered) -> None:
    """Carry the dictionaries and the next offset of each topic on."""
    names, offsets = found.topic_names, found.next_offsets
    for topic_id, name in index.names.items():
        while len(names) <= topic_id:
            names.append(b"")
            offsets.append(0)
        names[topic_id] = name
    for topic_id, (first, count, _) in index.topics.items():
        offsets[topic_id] = max(offsets[topic_id], first + count)
    for number, name in index.publishers.items():
        while len(found.publishers) <= number:
            found.publishers.append(b"")
        found.publishers[number] = name
    if index.places:
        found.last_ts = max(found.last_ts, index.places[-1].base_ts)
