"""The manifest of a partition: an append-only list of edits about its segments, each with a CRC.

docs/reference/log-format.md.
Lost or damaged, it is rebuilt from the segments; an unknown segment is adopted, never removed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypedDict, TypeGuard

from commitlog.checksum import crc32
from commitlog.chunk import NUMBER_MAX
from commitlog.disk.clock_guard import Jump
from commitlog.disk.files import Files, replace_file, whole_file

NAME = "MANIFEST"
EDITS_MIN = 256  # of a list that is worth writing anew while the broker runs


class Edit(TypedDict, total=False):
    """One line; which fields it has depends on `edit`: `FIELDS`, `Manifest`."""

    edit: str
    segment: str
    base_lsn: int
    end_lsn: int
    next_lsn: int
    lsn: int
    stop: int
    salt: int
    why: str
    jumps: list[list[int]]


def encode_edit(edit: Edit) -> bytes:
    text = json.dumps(edit, separators=(",", ":"), sort_keys=True).encode()
    return b"%08x %s\n" % (crc32(text), text)


FIELDS = {
    "first": ("lsn",),
    "open": ("segment", "base_lsn"),
    "drop": ("segment",),
    "seal": ("segment", "end_lsn", "stop"),
    "end": ("segment", "end_lsn", "stop"),
    "gap": ("base_lsn", "next_lsn", "why"),
    "clock": ("jumps",),
}
ENDS = ("seal", "end")
SALT_MAX = 1 << 64
SEGMENT_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.seg")


def is_sound(edit: dict[str, object]) -> TypeGuard[Edit]:
    """Whether an edit is of a known kind and has that kind's fields."""
    kind = edit.get("edit")
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None or not is_of("salt", edit.get("salt", 0)):
        return False
    return all(is_of(field, edit.get(field)) for field in fields)


def is_of(field: str, value: object) -> bool:
    if field == "segment":
        return isinstance(value, str) and SEGMENT_NAME.fullmatch(value) is not None
    if field == "why":
        return isinstance(value, str)
    if field == "jumps":
        return isinstance(value, list) and all(
            isinstance(jump, list) and len(jump) == 2 and all(is_of("us", us) for us in jump) for jump in value
        )
    return type(value) is int and 0 <= value < (SALT_MAX if field == "salt" else NUMBER_MAX)


def decode_edits(raw: bytes) -> list[Edit]:
    """Every edit whose CRC matches; a torn last line is skipped, a damaged one hides no other."""
    edits = []
    for line in raw.split(b"\n")[:-1]:
        edit = maybe_edit(line)
        if edit is not None and is_sound(edit):
            edits.append(edit)
    return edits


def maybe_edit(line: bytes) -> dict[str, object] | None:
    crc, _, text = line.partition(b" ")
    try:
        if crc == b"%08x" % crc32(text):
            edit = json.loads(text)
            return edit if isinstance(edit, dict) else None
    except ValueError:
        pass
    return None


def bad_lines(raw: bytes) -> list[int]:
    """Numbers, from 1, of the lines whose CRC differs, without a torn last line."""
    lines = raw.split(b"\n")[:-1]
    return [number for number, line in enumerate(lines, 1) if maybe_edit(line) is None]


def ends_of(edits: list[Edit]) -> dict[str, list[Edit]]:
    """The edits that tell where a segment ends, by its name, in their order."""
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        if edit["edit"] in ENDS:
            found.setdefault(edit["segment"], []).append(edit)
    return found


def end_of(ends: list[Edit], salt: int) -> Edit | None:
    """Of a segment's edits the one that is true of the file with this salt: the last that names it, or names none.

    None: the file is another one than all of them mean, such as one from a backup"""
    for edit in reversed(ends):
        if edit.get("salt", salt) == salt:
            return {**edit, "salt": salt}
    return None


def salted(edits: list[Edit], salts: Mapping[str, int]) -> list[Edit]:
    """With the salt of the file that is there now in each edit of an end that names none. salts: by segment's name"""
    return [
        {**edit, "salt": salts[edit["segment"]]}
        if edit["edit"] in ENDS and "salt" not in edit and edit["segment"] in salts
        else edit
        for edit in edits
    ]


def clock_edit(jumps: list[Jump]) -> Edit:
    return {"edit": "clock", "jumps": [list(jump) for jump in jumps]}


class Manifest:
    """The edits of one partition's directory. Each has "edit":

    "first" (lsn: retention removed all below) · "open" (segment, base_lsn) · "drop" (segment: it had no valid
    records, and was removed) · "seal" (segment, end_lsn, stop) · "end" (segment, end_lsn, stop: abandoned, or not
    sealed; its valid part ends at byte `stop`) · "gap" (base_lsn, next_lsn, why: reported as lost) · "clock"
    (jumps: [before_us, after_us] each, of the wall clock; the last such edit counts). "seal" and "end" have the salt of
    the file that they mean, but for those of earlier versions.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{NAME}"
        self._handle: int | None = None
        self._position = 0
        self._compact_at = EDITS_MIN
        self.edits: list[Edit] = []

    def load(self) -> list[Edit]:
        """Read the edits; writes nothing."""
        if self._files.exists(self._path):
            self.edits = decode_edits(whole_file(self._files, self._path))
        return self.edits

    def rewrite(self, edits: list[Edit]) -> None:
        """Replace the whole list. raises: OSError, and then the old one stays"""
        self.close()
        content = b"".join(map(encode_edit, edits))
        replace_file(self._files, self._path, content)
        self.edits = edits
        self._handle = self._files.open(self._path, write=True)
        self._position = len(content)

    def add(self, edit: Edit) -> None:
        """Append one edit and sync it. After `rewrite`. raises: OSError

        A file whose sync failed is not synced again: the next edit goes to a new one, with all before it."""
        if edit["edit"] == "first" and len(self.edits) >= self._compact_at:
            # A partition that loses segments as fast as it gets them would have a line of each until the next start.
            self.rewrite([*self._still_true(), edit])
            self._compact_at = max(EDITS_MIN, 2 * len(self.edits))
            return
        if self._handle is None:
            self.rewrite([*self.edits, edit])
            return
        raw = encode_edit(edit)
        self._files.write(self._handle, self._position, [raw])
        try:
            self._files.sync(self._handle)
        except OSError:
            self.close()
            raise
        self._position += len(raw)
        self.edits.append(edit)

    def _still_true(self) -> list[Edit]:
        """Without what was said of segments that an earlier "first" gave up, and that are no files any more.

        Of those that the next "first" gives up the files are still there: a start that finds them knows them by it."""
        firsts = [edit for edit in self.edits if edit["edit"] == "first"]
        first_lsn = max((edit["lsn"] for edit in firsts), default=0)
        directory = self._path.rpartition("/")[0]
        gone = {
            edit["segment"]
            for edit in self.edits
            if edit["edit"] == "drop" or (edit["edit"] in ("seal", "end") and edit["end_lsn"] <= first_lsn)
        }
        gone = {name for name in gone if not self._files.exists(f"{directory}/{name}")}
        clocks = [edit for edit in self.edits if edit["edit"] == "clock"]
        kept = [edit for edit in firsts if edit["lsn"] == first_lsn][-1:]
        for edit in self.edits:
            is_over = edit["edit"] in ("first", "clock") or (edit["edit"] == "gap" and edit["next_lsn"] <= first_lsn)
            if not is_over and edit.get("segment") not in gone:
                kept.append(edit)
        return kept + clocks[-1:]

    def close(self) -> None:
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None
