"""The content of a replica's notes as a file, and whether two of them fit each other.

docs/reference/log-format.md, pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from commitlog.chunk import NUMBER_MAX
from commitlog.errors import StoreError

DOUBTED = -1  # instead of an opened epoch

# Of a copy: the lsn behind its last record that is synced, and the name of its last segment, "" if that is not known.
Holding = tuple[int, str]

# Epoch that was opened with them, number of the configuration, replicas, and the old ones while members change.
Voters = tuple[int, int, list[str], list[str] | None]


class Whole(NamedTuple):
    """What was noted when a copy was found to lack records: it is whole again where all of them are there again.

    saves: of the notes at that moment, which directories that were away since still have; opened, opened_term, held: as
    of `StoredReplicaState`"""

    saves: int
    opened: int
    opened_term: str
    held: Mapping[str, Holding]


class Note(NamedTuple):
    """As of `StoredReplicaState`.

    saves: how often it was saved, 0 by versions that do not count; whole: of a copy that is
    doubted because records are missing"""

    promised: int = 0
    opened: int = 0
    disk: str = ""
    promised_term: str = ""
    opened_term: str = ""
    voters: Voters | None = None
    marks: Mapping[str, int] = {}
    forced: int = 0
    restored: int = 0
    saves: int = 0
    held: Mapping[str, Holding] = {}
    forgets: bool = False
    whole: Whole | None = None


def encoded(note: Note) -> bytes:
    """What is not known is left out, as earlier versions wrote it."""
    content: dict[str, Any] = {"promised": note.promised, "opened": note.opened, "disk": note.disk}
    for key in (
        "promised_term",
        "opened_term",
        "voters",
        "marks",
        "forced",
        "restored",
        "saves",
        "held",
        "forgets",
        "whole",
    ):
        if value := getattr(note, key):
            content[key] = value
    return (json.dumps(content) + "\n").encode()


def decoded(raw: bytes) -> Note | None:
    """None if it is none."""
    try:
        content = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    known = {key: content[key] for key in Note._fields if key in content}
    if not {"promised", "opened", "disk"} <= known.keys():
        return None
    if known.get("voters") is not None:
        try:
            opened, config, replicas, old = known["voters"]
        except (TypeError, ValueError):
            return None
        known["voters"] = (opened, config, replicas, old)
    try:
        known["held"] = {key: (end, name) for key, (end, name) in known.get("held", {}).items()}
        if known.get("whole") is not None:
            saves, opened, term, held = known["whole"]
            known["whole"] = Whole(saves, opened, term, {key: (end, name) for key, (end, name) in held.items()})
    except (AttributeError, TypeError, ValueError):
        return None
    note = Note(**known)
    return note if is_sound(note) else None


def is_sound(note: Note) -> bool:
    if note.whole is not None and not (
        all(type(each) is int for each in (note.whole.saves, note.whole.opened))
        and isinstance(note.whole.opened_term, str)
        and all(type(end) is int for end, _ in note.whole.held.values())
    ):
        return False
    return (
        all(type(each) is int for each in (note.promised, note.opened, note.forced, note.restored, note.saves))
        and all(isinstance(each, str) for each in (note.disk, note.promised_term, note.opened_term))
        and isinstance(note.marks, dict)
        and all(type(lsn) is int for lsn in (*note.marks.values(), *(end for end, _ in note.held.values())))
        and DOUBTED <= note.opened <= note.promised < NUMBER_MAX
    )


def joined(first: Note, beside: Note) -> tuple[Note, str]:
    """(what holds, why the two places do not fit each other). beside: is written first, at each save

    One save apart is a crash between the two: the newer one counts, whoever was told of it. Anything else is a place
    that was restored from an old copy, or belongs to another disk."""
    if not first.saves:
        return first, ""  # of a version that keeps one place
    if beside.disk != first.disk:
        return first, f"the notes beside the journal are of disk {beside.disk}, and this is {first.disk}"
    if beside.saves in (first.saves, first.saves + 1):
        return beside, ""
    if (back := maybe_back(first, beside)) is not None:
        return back, ""
    newest = max(first, beside, key=lambda note: note.saves)
    older = "those beside the journal are" if newest is first else "those of _cluster are"
    return newest, f"the notes of this replica do not fit each other: {older} an old copy"


def maybe_back(first: Note, beside: Note) -> Note | None:
    """The notes, if those beside the journal are of directories that were away since the doubt about the copy began.

    Promises are those of `_cluster`, which was here all the time. Nobody was told of a change that only the other place
    has. What an operator forced meanwhile, and a disk that was an old copy, leave nothing to go back to."""
    whole = first.whole
    if whole is None or first.forgets or (first.forced, first.restored) != (beside.forced, beside.restored):
        return None
    if beside.saves not in (whole.saves, whole.saves + 1) or beside.opened == DOUBTED:
        return None
    marks = {key: max(first.marks.get(key, 0), lsn) for key, lsn in {**first.marks, **beside.marks}.items()}
    held = {**whole.held, **beside.held}
    return first._replace(
        marks=marks, whole=whole._replace(opened=beside.opened, opened_term=beside.opened_term, held=held)
    )


def refusal(root: str, path: str, what: str) -> StoreError:
    return StoreError(
        root,
        f"{path} {what}: what this replica has promised is unknown, so it must not vote. Move the data directory "
        f"away and start with an empty one: the other nodes fill it",
    )
