"""What a function has done since its process began, for an operator: counters and how far behind it is.

Written as a file in its folder, which the gateway reads for /metrics, and `rumqd functions status`."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER, FILE = "_functions", "figures.json"  # in the data directory, with a folder of each function's positions
KINDS = ("raised", "stalled", "died", "memory", "result", "load", "publish")


class FunctionCounts:
    """records: read and done; results: messages published; passed, refused: records by what happened instead"""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._behind: dict[str, int] = {}
        self._held: set[str] = set()

    def count(self, **more: int) -> None:
        with self._lock:
            self._counts.update(more)

    def failed(self, kind: str) -> None:
        with self._lock:
            self._failures[kind] += 1

    def stands(self, partition: str, *, behind: int, is_held: bool) -> None:
        """How many records it has not done yet, and whether it waits at a batch that failed."""
        with self._lock:
            self._behind[partition] = behind
            (self._held.add if is_held else self._held.discard)(partition)

    def figures(self) -> dict[str, Any]:
        with self._lock:
            names = ("records", "results", "passed", "refused")
            return {
                **{name: self._counts[name] for name in names},
                "failures": dict(self._failures),
                "behind": sum(self._behind.values()),
                "held": len(self._held),
            }


def write_figures(folder: Path, counts: dict[str, FunctionCounts]) -> None:
    """raises: OSError. Not synced: they begin anew with the process"""
    path = folder / FILE
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({name: each.figures() for name, each in counts.items()}))
    os.replace(temporary, path)


def read_figures(folder: Path) -> dict[str, dict[str, Any]]:
    """Name of the function -> its figures; empty where none has run."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, dict[str, Any]] = json.loads((folder / FILE).read_text())
        return found
    return {}
