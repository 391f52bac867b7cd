"""The manifest, `_rumq/manifest.jsonl`: the records of each file, one checksummed edit per line. docs/guides/lake.md.

A file that no line names is not part of the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypedDict, cast
from zlib import crc32

from rumq.lake.errors import LakeError
from rumq.lake.file_names import is_hidden
from rumq.lake.folder import Folder

NAME = "_rumq/manifest.jsonl"
HEAD = len(b'{"crc":"00000000",')


class LakeFile(NamedTuple):
    """One Parquet file. records base_lsn..next_lsn of a partition, less the gaps; hour: since 1970, UTC.

    raw: bytes of its records' frames in the log; bytes, crc: of the file, CRC-32
    lsn, payload: digests of its records, which add up (rumq/lake/kernels/walking.py)
    first_ts, last_ts: bounds of ts, µs; -1: not known. first_topic, last_topic: bounds of topic; "": not known"""

    path: str
    partition: str
    hour: int
    base_lsn: int
    next_lsn: int
    rows: int
    raw: int
    bytes: int
    crc: int
    lsn: int
    payload: int
    first_ts: int = -1
    last_ts: int = -1
    first_topic: str = ""
    last_topic: str = ""


class Hidden(NamedTuple):
    """A merged file already in the manifest but hidden from directory listings, which still show the files in `gone`.

    since: seconds since 1970"""

    since: int
    gone: tuple[str, ...]


class Lost(NamedTuple):
    """Records that could not be exported: damaged in the log, or removed before."""

    base_lsn: int
    next_lsn: int
    why: str


class LakeEdit(TypedDict, total=False):
    """A line of the manifest; `Manifest` documents the keys of each kind."""

    edit: str
    partition: str
    base_lsn: int
    next_lsn: int
    segment: str
    files: list[dict[str, Any]]
    gaps: list[list[Any]]
    gone: list[str]
    at: int


class LakePartition:
    """The lake's part of one partition. first_lsn..next_lsn: all of it is in files or is a gap."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first_lsn = self.next_lsn = -1
        self.segment = ""  # the last one that was exported
        self.files: dict[str, LakeFile] = {}
        self.hidden: dict[str, Hidden] = {}
        self.kept: dict[str, int] = {}  # hidden names of shown files, and since when: a query may still read them
        self.gaps: list[Lost] = []
        self.breaks: list[str] = []  # adds that are not consecutive


def encode(edit: LakeEdit) -> bytes:
    text = json.dumps(edit, separators=(",", ":")).encode()
    return b'{"crc":"%08x",' % crc32(text) + text[1:] + b"\n"


def maybe_edit(line: bytes) -> LakeEdit | None:
    try:
        if line[:HEAD] == b'{"crc":"%08x",' % crc32(b"{" + line[HEAD:]):
            edit = json.loads(b"{" + line[HEAD:])
            return cast(LakeEdit, edit) if isinstance(edit, dict) else None
    except ValueError:
        pass
    return None


class LakeManifest:
    """The edits of a lake, and the resulting state. partitions: by name, such as main/g1/p0

    "add": a range of a partition: partition, base_lsn, next_lsn, segment, files, gaps
    "merge": files of one partition and hour that replace others: partition, files, gone (paths), at (seconds)
    "show": a merged file in its hour's folder: partition, files (it), gone (its hidden name), at"""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.partitions: dict[str, LakePartition] = {}
        self.bad_lines: list[int] = []
        self._torn = self._whole = b""
        self._bytes = 0  # of the file
        self._load()

    def _load(self) -> None:
        if self._folder.size(NAME) < 0:
            return
        raw = self._folder.read(NAME)
        self._bytes = len(raw)
        lines = raw.split(b"\n")
        # A torn line has no end, or, after a power loss, pages that were never written. It was never committed.
        self._torn = lines.pop()
        if lines and b"\0" in lines[-1] and maybe_edit(lines[-1]) is None:
            self._torn = lines.pop() + b"\n" + self._torn
        self._whole = raw[: len(raw) - len(self._torn)]
        for number, line in enumerate(lines, 1):
            edit = maybe_edit(line)
            if edit is None:
                self.bad_lines.append(number)
            else:
                self._apply(edit)

    def readable(self) -> LakeManifest:
        """Itself. raises: LakeError if a line is damaged: then the content of the lake is unknown"""
        if self.bad_lines:
            raise LakeError(
                self._folder.location,
                f"line {self.bad_lines[0]} of {NAME} is damaged, so its files would be lost or exported twice: "
                "bring that file back from a copy, or export to a new folder",
            )
        return self

    def writable(self) -> LakeManifest:
        """Itself, ready for appends. raises: as `readable`, OSError"""
        self.readable()
        if self._torn:
            self._folder.put(NAME, self._whole, lambda _: None)
            self._torn = b""
            self._bytes = len(self._whole)
        return self

    def edits(self) -> Iterator[LakeEdit]:
        """Every line, in order, as it was read."""
        for line in self._whole.split(b"\n"):
            if (edit := maybe_edit(line)) is not None:
                yield edit

    def partition(self, name: str) -> LakePartition:
        return self.partitions.get(name) or LakePartition(name)

    def files(self) -> Iterator[LakeFile]:
        for partition in self.partitions.values():
            yield from partition.files.values()

    def shadowed(self) -> set[str]:
        """Files that directory listings show until the merged ones are shown."""
        return {path for p in self.partitions.values() for hidden in p.hidden.values() for path in hidden.gone}

    def add(self, edit: LakeEdit) -> None:
        """Append an edit, synced. After `writable`. raises: OSError, LakeError; then read the manifest again

        An object store excludes no second exporter: in a cluster the one of an earlier leader may live a moment longer
        than it leads. Whoever finds a line that it did not write reads the manifest again, and goes on behind it."""
        line, there = encode(edit), max(0, self._folder.size(NAME))
        if there != self._bytes:
            raise LakeError(
                self._folder.location,
                f"another process has exported to it: {NAME} has {there} bytes and had {self._bytes}",
            )
        self._folder.append(NAME, line)
        self._bytes += len(line)
        self._apply(edit)

    def _apply(self, edit: LakeEdit) -> None:
        name = edit["partition"]
        partition = self.partitions.setdefault(name, LakePartition(name))
        for path in edit.get("gone", ()):
            partition.files.pop(path, None)
            partition.hidden.pop(path, None)
            if is_hidden(path):
                partition.kept[path] = edit["at"]
        for fields in edit["files"]:
            file = LakeFile(partition=name, **fields)
            partition.files[file.path] = file
            if is_hidden(file.path):
                partition.hidden[file.path] = Hidden(edit["at"], tuple(edit["gone"]))
        if edit["edit"] == "add":
            if partition.next_lsn < 0:
                partition.first_lsn = edit["base_lsn"]
            elif edit["base_lsn"] != partition.next_lsn:
                partition.breaks.append(f"records {partition.next_lsn} to {edit['base_lsn'] - 1} are in no line")
            partition.next_lsn = edit["next_lsn"]
            partition.segment = edit["segment"]
            partition.gaps += [Lost(*gap) for gap in edit["gaps"]]


def as_fields(file: LakeFile) -> dict[str, Any]:
    fields = file._asdict()
    del fields["partition"]
    return fields
