"""What a data directory takes of the disk, by the part of the broker that wrote it. stat(2), `st_blocks`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

PARTS = ("log", "index", "journal", "other")
INDEXES = (".idx", "topics.snap")  # in the middle of a name, too, while the file is being written
BESIDE = ("MANIFEST", "replica.json")  # a partition's files that hold no records
JOURNAL = "_state"
BLOCK = 512  # of `st_blocks`, whatever the file system


def part_of(path: str) -> str:
    """Of a path below the data directory: "log" for records, however they are packed."""
    *above, name = path.split("/")
    if above[:1] == [JOURNAL]:
        return "journal"
    if len(above) != 3 or name.startswith(BESIDE):  # <stream>/g<n>/p<n>/<file>
        return "other"
    return "index" if any(each in name for each in INDEXES) else "log"


def taken(folder: Path) -> Counter[str]:
    """Bytes of the disk by part; directories themselves left out. What goes meanwhile does not count."""
    found: Counter[str] = Counter()
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            try:
                found[part_of(str(path.relative_to(folder)))] += BLOCK * path.stat().st_blocks
            except OSError:
                pass
    return found


def segments(folder: Path) -> int:
    """Of the streams that keep messages."""
    return sum(part_of(str(path.relative_to(folder))) == "log" for path in folder.glob("*/g*/p*/*"))
