"""What a bridge remembers of its two sessions: which are new, and which filters they have. A small file, no message; on
nodes of a cluster a value that all of them have.

A session that is new knows nothing of packet ids of the one before: they are released at the other side before any of
them is used again, and that may be days later, when the other side is reached. It is written when a
session begins, and waited for. Knows no MQTT."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

SUFFIX = ".sessions"


class PairingStore(Protocol):
    """Where pairings are kept, as bytes, by the name of the bridge."""

    def names(self) -> list[str]:
        """Bridges that have, or had, sessions."""

    def maybe_read(self, name: str) -> bytes | None:
        """None: it has none. raises: OSError"""

    async def write(self, name: str, text: bytes) -> None:
        """Returns once it is safe. raises: OSError"""

    async def remove(self, name: str) -> None:
        """raises: OSError"""


class PairingFiles:
    """Of a broker alone. folder: `rumq.bridge.counts.FOLDER` of a data directory"""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}"

    def names(self) -> list[str]:
        return [each.name.removesuffix(SUFFIX) for each in self._folder.glob(f"*{SUFFIX}")]

    def maybe_read(self, name: str) -> bytes | None:
        with contextlib.suppress(FileNotFoundError):
            return self.path(name).read_bytes()
        return None

    async def write(self, name: str, text: bytes) -> None:
        temporary = self.path(name).with_suffix(".tmp")
        with open(temporary, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path(name))
        self._sync()

    async def remove(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class Pairing:
    """new: sides whose session began since both were connected; filters: by side, as they were subscribed

    remote: the broker that packet ids were paired with, by its id or address; "": none yet
    exactly_once: then both carried QoS 1 as QoS 2"""

    def __init__(self, store: PairingStore, name: str) -> None:
        """What cannot be read counts as none: then no session is new. raises: OSError"""
        self._is_kept = True  # False: the last write failed, and the store may have what was before
        self._write_text: Callable[[bytes], Awaitable[None]] = lambda text: store.write(name, text)
        found: Any = {}
        with contextlib.suppress(ValueError):
            found = json.loads(store.maybe_read(name) or b"{}")
        if not isinstance(found, dict):
            found = {}
        self.new: set[str] = set(found.get("new", ()))
        self.filters: dict[str, list[str]] = {side: list(each) for side, each in found.get("filters", {}).items()}
        self.remote: str = found.get("remote", "")
        self.exactly_once: bool = found.get("exactly_once", False)

    async def note_new(self, side: str) -> None:
        """raises: OSError"""
        if side not in self.new or self.filters.get(side) or not self._is_kept:
            self.new.add(side)
            self.filters.pop(side, None)
            await self._write()

    async def note_filters(self, side: str, filters: list[str]) -> None:
        """raises: OSError"""
        if self.filters.get(side) != filters or not self._is_kept:
            self.filters[side] = filters
            await self._write()

    async def note_paired(self, remote: str, *, exactly_once: bool = False) -> None:
        """Both sides have been connected, and packet ids are free. raises: OSError"""
        is_noted = self.remote == remote and self.exactly_once == exactly_once
        if self.new or not is_noted or not self._is_kept:
            self.new.clear()
            self.remote, self.exactly_once = remote, exactly_once
            await self._write()

    async def _write(self) -> None:
        kept = {"new": sorted(self.new), "filters": self.filters, "remote": self.remote}
        self._is_kept = False
        await self._write_text(json.dumps({**kept, "exactly_once": self.exactly_once}).encode())
        self._is_kept = True
