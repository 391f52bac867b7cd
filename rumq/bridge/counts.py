"""What bridges have done since their process began, and the file in which the gateway reads it for /metrics."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER, FILE = "_bridges", "figures.json"  # in the data directory
STALE_SECONDS = 10.0  # figures are written every second while their process lives
OUT, IN = "out", "in"  # to the remote broker, from it


@dataclass
class RelayCounts:
    """Of one direction. messages: the target has them, also one that came again; bytes: of payloads

    doubtful: sent again to a target that lost its session, and may have them; looped: left out, they have been there
    dropped: of QoS 0, no room; unmapped: of a filter of earlier settings; refused: given up, by the reason's text"""

    messages: int = 0
    bytes: int = 0
    doubtful: int = 0
    looped: int = 0
    dropped: int = 0
    unmapped: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def figures(self) -> dict[str, int]:
        names = ("messages", "bytes", "doubtful", "looped", "dropped", "unmapped")
        return {**{name: getattr(self, name) for name in names}, "refused": self.refused.total()}


@dataclass
class BridgeCounts:
    """is_up: both sides are connected; connections: how often they were; relayed: by direction"""

    is_up: bool = False
    connections: int = 0
    relayed: dict[str, RelayCounts] = field(default_factory=lambda: {OUT: RelayCounts(), IN: RelayCounts()})

    def figures(self) -> dict[str, Any]:
        relayed = {direction: each.figures() for direction, each in self.relayed.items()}
        return {"up": int(self.is_up), "connections": self.connections, **relayed}


def write_figures(folder: Path, counts: Mapping[str, BridgeCounts]) -> None:
    """raises: OSError. Not synced: they begin anew with the process"""
    temporary = (folder / FILE).with_suffix(".tmp")
    temporary.write_text(json.dumps({name: each.figures() for name, each in counts.items()}))
    os.replace(temporary, folder / FILE)


def read_figures(folder: Path) -> dict[str, dict[str, Any]]:
    """Name of the bridge -> its figures; empty where none has run."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, dict[str, Any]] = json.loads((folder / FILE).read_text())
        return found
    return {}


def read_states(folder: Path, now: float) -> dict[str, bool]:
    """Name of the bridge -> whether both sides are connected. now: seconds since 1970"""
    with contextlib.suppress(OSError):
        is_fresh = now - (folder / FILE).stat().st_mtime <= STALE_SECONDS
        return {name: is_fresh and bool(each.get("up")) for name, each in read_figures(folder).items()}
    return {}
