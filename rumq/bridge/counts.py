"""How bridges are connected and what they have done since their process began, and the file in which the gateway reads
it for /metrics, REST and the page."""

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
ELSEWHERE = "elsewhere"  # beside it, on nodes of a cluster
STALE_SECONDS = 10.0  # figures are written every second while their process lives
WHY_CHARS_MAX = 500  # of a failure's text, part of which another broker may have written
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
    """is_up: both sides are connected; connections: how often they were; relayed: by direction

    since_us: of `is_up` as it is, in µs since 1970, 0: not known; why: the last failure, empty: none yet
    address: of the other broker, as it is tried; broker, mqtt: its id, if it is a rumq broker, and the version, both
    of the last connection"""

    is_up: bool = False
    since_us: int = 0
    why: str = ""
    address: str = ""
    broker: str = ""
    mqtt: str = ""
    connections: int = 0
    relayed: dict[str, RelayCounts] = field(default_factory=lambda: {OUT: RelayCounts(), IN: RelayCounts()})

    def note_connected(self, now_us: int, broker: str, mqtt: str) -> None:
        self.is_up, self.since_us, self.broker, self.mqtt = True, now_us, broker, mqtt
        self.connections += 1

    def note_failed(self, now_us: int, why: str) -> None:
        """A connection has ended, or there was none again: then it is away since the first of these."""
        if self.is_up or not self.since_us:
            self.since_us = now_us
        self.is_up, self.why = False, why[:WHY_CHARS_MAX]

    def figures(self) -> dict[str, Any]:
        relayed = {direction: each.figures() for direction, each in self.relayed.items()}
        state = {name: getattr(self, name) for name in ("since_us", "why", "address", "broker", "mqtt")}
        return {"up": int(self.is_up), "connections": self.connections, **state, **relayed}


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


def write_elsewhere(folder: Path, said: str) -> None:
    """said: which other node of a cluster runs the bridges, in a sentence; empty: this broker does. raises: OSError"""
    if read_elsewhere(folder) == said:
        return
    temporary = (folder / ELSEWHERE).with_suffix(".tmp")
    temporary.write_text(said)
    os.replace(temporary, folder / ELSEWHERE)


def read_elsewhere(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return (folder / ELSEWHERE).read_text()
    return ""


def read_live_figures(folder: Path, now: float) -> dict[str, dict[str, Any]]:
    """As `read_figures`; once their process is gone, none is connected. now: seconds since 1970"""
    found = read_figures(folder)
    if not are_live(folder, now):
        for each in found.values():
            each["up"] = 0
    return found


def read_states(folder: Path, now: float) -> dict[str, bool]:
    """Name of the bridge -> whether both sides are connected. now: seconds since 1970"""
    return {name: bool(each.get("up")) for name, each in read_live_figures(folder, now).items()}


def are_live(folder: Path, now: float) -> bool:
    """Whether the process of the bridges has written its figures lately. now: seconds since 1970"""
    with contextlib.suppress(OSError):
        return now - (folder / FILE).stat().st_mtime <= STALE_SECONDS
    return False
