"""What a cut of a copy removes and leaves, before anything is done. Pure; knows no file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from commitlog.errors import LogError
from commitlog.format.manifest import Edit
from commitlog.replica.inventory import SegmentState


class CutPlan(NamedTuple):
    """kept: what is left, the last of them cut if `cut`; dropped: of the end; trimmed: below first_lsn

    end_lsn: of the log afterwards; cut: the segment as it was before it is cut, None: none is"""

    kept: list[SegmentState]
    dropped: list[SegmentState]
    trimmed: list[SegmentState]
    cut: SegmentState | None
    first_lsn: int
    end_lsn: int


def planned(
    segments: Sequence[SegmentState], drop: Sequence[str], name: str, end_lsn: int, stop: int, first_lsn: int
) -> CutPlan:
    """segments: of the copy, in order; the others as of `MirrorPartition.cut`.

    raises: LogError if what is left would have a hole, or the copy does not have what is to be cut"""
    names = set(drop)
    left = [state for state in segments if state.name not in names]
    cut: SegmentState | None = None
    if name:
        if not left or left[-1].name != name:
            raise LogError(f"{name} is to be cut, and is not the last segment left of this copy")
        last = left[-1]
        if last.end_lsn < end_lsn or last.stop < stop:
            raise LogError(f"{name} is to end at byte {stop} before lsn {end_lsn}, and is shorter here")
        if last[2:4] != (end_lsn, stop):
            cut, left[-1] = last, last._replace(end_lsn=end_lsn, stop=stop, is_done=False)
    kept = [state for state in left if state.base_lsn >= first_lsn]
    reached = first_lsn
    for state in kept:
        if state.base_lsn != reached:
            raise LogError(f"a cut would leave nothing from lsn {reached} to {state.base_lsn}")
        reached = state.end_lsn
    trimmed = [state for state in left if state.base_lsn < first_lsn]
    if trimmed and trimmed[-1].end_lsn > first_lsn:
        raise LogError(f"the log is to begin at lsn {first_lsn}, inside {trimmed[-1].name}")
    return CutPlan(kept, [state for state in segments if state.name in names], trimmed, cut, first_lsn, reached)


def edits_of(edits: Sequence[Edit], kept: Sequence[SegmentState], first_lsn: int, end_lsn: int) -> list[Edit]:
    """Of a manifest's edits, those that are still true when only these segments are left."""
    done = {state.name for state in kept if state.is_done}
    names = {"open": {state.name for state in kept}, "seal": done, "end": done}
    found: list[Edit] = [{"edit": "first", "lsn": first_lsn}]
    for edit in edits:
        if edit.get("segment") in names.get(edit["edit"], ()) or (
            edit["edit"] == "gap" and first_lsn < edit["next_lsn"] <= end_lsn
        ):
            found.append(edit)
    clocks = [edit for edit in edits if edit["edit"] == "clock"]
    return found + clocks[-1:]
