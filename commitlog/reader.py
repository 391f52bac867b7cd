"""Read a data directory from another process: no lock is taken, nothing is written, a broker may run meanwhile.

What may be read of a partition (`end_lsn`) is what the files prove: the highest committed mark in any chunk's header,
all of a sealed segment, and, where no live process holds the directory, every whole chunk, for that is what the next
start will keep. docs/log-format.md, "Reading"."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from commitlog.chunk import HEADER_BYTES, SEAL, Chunk, Gap, decode_aux
from commitlog.errors import Damaged
from commitlog.files import Files
from commitlog.index import load_index, place_at
from commitlog.kernels import rows as kernel
from commitlog.lookup import clipped
from commitlog.manifest import Manifest
from commitlog.retention import SNAPSHOT, decode_snapshot
from commitlog.segment import (
    HOLDS_RECORDS,
    SEGMENT_HEADER_BYTES,
    Place,
    body_fault,
    read_aux,
    read_chunk,
    read_header,
    walk,
)


@dataclass
class SegmentView:
    """One segment file. end_lsn: one behind its last record that may be read."""

    path: str
    base_lsn: int
    end_lsn: int
    sealed: bool
    bytes: int
    salt: int
    stop: int = 0  # the byte behind what counts
    places: list[Place] = field(default_factory=list, repr=False)
    first_ts: int = 0
    last_ts: int = 0


class PartitionView:
    """One partition as it was when the view was made."""

    def __init__(
        self, files: Files, directory: str, stream: str, generation: int, number: int, held: bool
    ) -> None:
        self._files = files
        self.directory, self.stream, self.generation, self.number = directory, stream, generation, number
        self._topics: dict[int, bytes] = {}
        self._publishers: dict[int, bytes] = {}
        self._segments: list[SegmentView] = []
        self.held = held
        self.unreadable: list[str] = []
        self._look(held)
        self.first_lsn = max(self._first, self._segments[0].base_lsn if self._segments else 0)
        self.end_lsn = max((s.end_lsn for s in self._segments), default=self.first_lsn)

    @property
    def name(self) -> str:
        """ "main/g1/p0": as subscribers of a replay see it."""
        return f"{self.stream}/g{self.generation}/p{self.number}"

    def segments(self) -> list[SegmentView]:
        return list(self._segments)

    def names(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Topic id -> topic, publisher number -> client id."""
        return self._topics, self._publishers

    def _look(self, held: bool) -> None:
        edits = Manifest(self._files, self.directory).load()
        self._first = max((e["lsn"] for e in edits if e["edit"] == "first"), default=0)
        known = {e["segment"]: e for e in edits if e["edit"] in ("seal", "end")}
        snapshot = f"{self.directory}/{SNAPSHOT}"
        if self._files.exists(snapshot):
            handle = self._files.open(snapshot)
            try:
                found = decode_snapshot(self._files.read(handle, 0, self._files.size(snapshot)))
            finally:
                self._files.close(handle)
            if found is not None:
                self._topics.update(enumerate(found[0]))
        marks = [0]
        for name in self._files.names(self.directory):
            if name.endswith(".seg"):
                try:
                    self._take(f"{self.directory}/{name}", known.get(name), held, marks)
                except (Damaged, FileNotFoundError) as damage:  # retention may take a file while we look
                    self.unreadable.append(str(damage))
        if held:
            proved = max(marks)
            for segment in self._segments:
                if not segment.sealed:
                    segment.end_lsn = max(segment.base_lsn, min(segment.end_lsn, proved))

    def _take(self, path: str, edit: dict[str, object] | None, held: bool, marks: list[int]) -> None:
        handle = self._files.open(path)
        try:
            size = self._files.size(path)
            header = read_header(self._files, handle, path)
            if edit is not None and edit["edit"] == "seal":
                index, end_lsn = load_index(self._files, path)
                self._topics.update(index.names)
                self._publishers.update(index.publishers)
                segment = SegmentView(
                    path, header.base_lsn, end_lsn, True, size, header.salt, size, index.places
                )
                marks.append(end_lsn)
            else:
                stop = size if edit is None else int(str(edit["position"]))
                segment = self._walked(handle, path, header.base_lsn, header.salt, stop, marks)
                segment.bytes = size
        finally:
            self._files.close(handle)
        if segment.places:
            segment.first_ts = segment.places[0].base_ts
            segment.last_ts = segment.places[-1].base_ts
        self._segments.append(segment)

    def _walked(
        self, handle: int, path: str, base_lsn: int, salt: int, stop: int, marks: list[int]
    ) -> SegmentView:
        """A segment that is written to, or that was not sealed: chunk by chunk."""
        segment = SegmentView(path, base_lsn, base_lsn, False, 0, salt, stop)
        for position, header in walk(self._files, handle, salt, SEGMENT_HEADER_BYTES, stop):
            marks.append(header.durable_lsn)
            if header.kind == SEAL:
                marks.append(header.base_lsn)
            if header.kind in HOLDS_RECORDS and header.count:
                # The last chunk may be half written: its body tells.
                if position + header.total_len >= stop:
                    body = self._files.read(handle, position + HEADER_BYTES, header.body_len)
                    if body_fault(header, body) is not None:
                        break
                segment.places.append(
                    Place(header.base_lsn, position, header.base_ts, header.count, header.total_len)
                )
                segment.end_lsn = header.next_lsn
            if header.aux_len:
                aux = decode_aux(read_aux(self._files, handle, position, header))
                for number, _, name in aux.topics:
                    self._topics[number] = name
                self._publishers.update(aux.publishers)
        return segment

    # Records

    def chunks(self, from_lsn: int, to_lsn: int) -> Iterator[Chunk | Gap]:
        """Records from_lsn..to_lsn in order, clipped at both ends; what cannot be read comes as a Gap."""
        lsn = max(from_lsn, self.first_lsn)
        to_lsn = min(to_lsn, self.end_lsn)
        for segment in self._segments:
            if segment.end_lsn <= lsn or lsn >= to_lsn:
                continue
            if segment.base_lsn > lsn:
                yield Gap(lsn, min(segment.base_lsn, to_lsn), "no segment has them")
                lsn = segment.base_lsn
            handle = self._files.open(segment.path)
            try:
                for place in segment.places[place_at(segment.places, lsn) :]:
                    if place.base_lsn >= to_lsn:
                        break
                    if place.base_lsn > lsn:
                        yield Gap(lsn, place.base_lsn, f"{segment.path} does not have them")
                    found = read_chunk(self._files, handle, segment.path, segment.salt, place)
                    start = max(lsn, place.base_lsn)
                    if isinstance(found, Chunk):
                        yield from_row(clipped(found, to_lsn), start - found.base_lsn)
                    else:
                        yield Gap(start, min(found.next_lsn, to_lsn), found.why)
                    lsn = place.next_lsn
            finally:
                self._files.close(handle)
        if lsn < to_lsn:
            yield Gap(lsn, to_lsn, "no segment has them")

    def find_time(self, ts_us: int) -> int:
        """The first lsn at or after that time; end_lsn when there is none."""
        for segment in self._segments:
            if not segment.places or (
                segment is not self._segments[-1] and segment.last_ts < ts_us - 3_600_000_000
            ):
                continue
            for number, place in enumerate(segment.places):
                following = segment.places[number + 1 : number + 2]
                if following and following[0].base_ts < ts_us:
                    continue
                if place.base_ts >= ts_us:
                    return min(place.base_lsn, self.end_lsn)
                for chunk in self.chunks(place.base_lsn, place.next_lsn):
                    if isinstance(chunk, Chunk):
                        row = int(kernel.first_at_time(chunk.rows, ts_us - chunk.base_ts))
                        if row < chunk.count:
                            return chunk.base_lsn + row
        return self.end_lsn

    def find_offset(self, topic: bytes, offset: int) -> int:
        """The lsn of a topic's offset, or of the next one that is kept; end_lsn when there is none."""
        topic_id = next((number for number, name in self._topics.items() if name == topic), None)
        if topic_id is not None:
            for chunk in self.chunks(self.first_lsn, self.end_lsn):
                if isinstance(chunk, Chunk):
                    row = int(kernel.first_of_topic(chunk.rows, topic_id, offset))
                    if row >= 0:
                        return chunk.base_lsn + row
        return self.end_lsn


def from_row(chunk: Chunk, first: int) -> Chunk:
    """The records of a chunk from row `first` on."""
    if first <= 0:
        return chunk
    rows = bytearray(memoryview(chunk.rows)[32 * first :])
    words = memoryview(rows).cast("I")
    start = words[1]
    for at in range(1, len(words), 8):
        words[at] -= start
    frames = memoryview(chunk.frames)[start:]
    return Chunk(chunk.base_lsn + first, chunk.count - first, chunk.base_ts, chunk.flags, rows, frames)


class LogReader:
    """Every partition of a data directory."""

    def __init__(self, files: Files, root: str) -> None:
        self._files, self.root = files, root
        if not files.exists(f"{root}/FORMAT"):
            raise FileNotFoundError(f"{root}: no data directory of rumq (it has no FORMAT)")

    def partitions(self) -> list[PartitionView]:
        """A view of each partition, made now."""
        held = held_by_a_live_process(self._files, self.root)
        found = []
        for stream in self._files.names(self.root):
            if not self._is_stream(stream):
                continue
            for generation in self._files.names(f"{self.root}/{stream}"):
                for part in self._files.names(f"{self.root}/{stream}/{generation}"):
                    directory = f"{self.root}/{stream}/{generation}/{part}"
                    found.append(
                        PartitionView(
                            self._files, directory, stream, int(generation[1:]), int(part[1:]), held
                        )
                    )
        return found

    def _is_stream(self, name: str) -> bool:
        return name not in ("LOCK", "FORMAT") and self._files.exists(f"{self.root}/{name}/g1")


def held_by_a_live_process(files: Files, root: str) -> bool:
    """Whether the process that wrote LOCK still runs on this machine. Unreadable: assume that it does."""
    path = f"{root}/LOCK"
    if not files.exists(path):
        return False
    handle = files.open(path)
    try:
        words = files.read(handle, 0, 64).split()
    finally:
        files.close(handle)
    if len(words) < 2 or words[0] != b"pid" or not words[1].isdigit():
        return True
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
