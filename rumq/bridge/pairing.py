"""What a bridge remembers of its two sessions: which are new, and which filters they have. A small file, no message.

A session that is new knows nothing of packet ids of the one before: they are released at the other side before any of
them is used again, and that may be days later, when the other side is reached. It is written when a
session begins, and waited for. Knows no MQTT."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

SUFFIX = ".sessions"


def pairing_file(folder: Path, name: str) -> Path:
    """folder: `rumq.bridge.counts.FOLDER` of a data directory"""
    return folder / f"{name}{SUFFIX}"


def paired_names(folder: Path) -> list[str]:
    """Bridges that have, or had, sessions."""
    return [each.name.removesuffix(SUFFIX) for each in folder.glob(f"*{SUFFIX}")]


class Pairing:
    """new: sides whose session began since both were connected; filters: by side, as they were subscribed

    remote: the broker that packet ids were paired with, by its id or address; "": none yet
    exactly_once: then both carried QoS 1 as QoS 2"""

    def __init__(self, path: Path) -> None:
        """A file that cannot be read counts as none: then no session is new. raises: OSError"""
        self._path = path
        found: Any = {}
        with contextlib.suppress(FileNotFoundError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            found = {}
        self.new: set[str] = set(found.get("new", ()))
        self.filters: dict[str, list[str]] = {side: list(each) for side, each in found.get("filters", {}).items()}
        self.remote: str = found.get("remote", "")
        self.exactly_once: bool = found.get("exactly_once", False)

    def note_new(self, side: str) -> None:
        """raises: OSError"""
        if side not in self.new or self.filters.get(side):
            self.new.add(side)
            self.filters.pop(side, None)
            self._write()

    def note_filters(self, side: str, filters: list[str]) -> None:
        """raises: OSError"""
        if self.filters.get(side) != filters:
            self.filters[side] = filters
            self._write()

    def note_paired(self, remote: str, *, exactly_once: bool = False) -> None:
        """Both sides have been connected, and packet ids are free. raises: OSError"""
        if self.new or self.remote != remote or self.exactly_once != exactly_once:
            self.new.clear()
            self.remote, self.exactly_once = remote, exactly_once
            self._write()

    def _write(self) -> None:
        kept = {"new": sorted(self.new), "filters": self.filters, "remote": self.remote}
        text = json.dumps({**kept, "exactly_once": self.exactly_once})
        temporary = self._path.with_suffix(".tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
