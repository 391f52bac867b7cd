"""The progress of a streaming query, from its checkpoint, also while the query runs.

A checkpoint is text, one file per batch, in offsets/ (a version, metadata, and one line per source) and in commits/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from rumq.errors import RumqError


class BadCheckpoint(RumqError):
    """path, and why it is invalid."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class CheckpointProgress(NamedTuple):
    """lsns: of each source of format rumq, partition -> start of the next batch; batch: the last finished one;
    unfinished: whether a further batch is in progress, which a restart repeats unchanged"""

    batch: int
    lsns: list[dict[str, int]]
    unfinished: bool


def checkpoint_progress(checkpoint: str) -> CheckpointProgress:
    """raises: BadCheckpoint"""
    root = Path(checkpoint)
    if not (root / "offsets").is_dir():
        raise BadCheckpoint(checkpoint, "no checkpoint of a streaming query: it has no directory offsets")
    begun, done = batches(root / "offsets"), batches(root / "commits")
    both = sorted(set(begun) & set(done))
    if not both:
        raise BadCheckpoint(checkpoint, "no batch is done yet")
    found = [lsns for line in lines_of(root / "offsets" / str(both[-1])) if (lsns := maybe_lsns(line)) is not None]
    if not found:
        raise BadCheckpoint(checkpoint, "its query does not read format rumq")
    return CheckpointProgress(both[-1], found, max(begun) > both[-1])


def batches(directory: Path) -> list[int]:
    return [int(path.name) for path in directory.glob("*") if path.name.isdigit()]


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()[2:]
    except (OSError, UnicodeDecodeError) as fault:
        raise BadCheckpoint(str(path), str(fault)) from None


def maybe_lsns(line: str) -> dict[str, int] | None:
    try:
        offsets: Any = json.loads(line)
        return dict(offsets["lsn"]) if offsets["v"] == 1 else None
    except (ValueError, TypeError, KeyError):
        return None
