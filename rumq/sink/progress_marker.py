"""The progress marker of a partition of a query on its state topic, and how an attempt continues from it.

docs/decisions/0016-a-sink-that-is-once.md."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from enum import Enum

from rumq.table.errors import BadProgressMarker, BatchSuperseded, Doubt

OPEN, STORED, DONE = "open", "stored", "done"


@dataclass(frozen=True, slots=True)
class ProgressMarker:
    """state: `open`, rows below `row` are stored and those up to `end` may be, with packet ids of `range` by their
    position; `stored`, all rows are stored; `done`, and no packet id is in use.

    release: number of ids of the other range that may wait for PUBREL; digest, end_digest: of the rows below `row` and
    below `end`, `Frames.digest`; sessions: names of probes, which identify the session of these ids by redelivery
    """

    batch: int
    state: str
    row: int
    end: int
    range: int
    release: int
    digest: int
    end_digest: int
    sessions: tuple[str, ...]

    def payload(self) -> bytes:
        return json.dumps({"v": 1, **asdict(self)}).encode()


def is_probe(payload: bytes) -> bool:
    """Whether a message of the state topic is an attempt's nonce. A marker is a JSON object, or empty: cleared."""
    return payload != b"" and not payload.startswith(b"{")


def parse(topic: str, payload: bytes) -> ProgressMarker:
    """raises: BadMark"""
    try:
        said = json.loads(payload)
        version = said.pop("v")
        sessions = tuple(map(str, said.pop("sessions")))
        marker = ProgressMarker(**said, sessions=sessions)
        numbers = [value for name, value in said.items() if name != "state"]
        if version != 1 or marker.state not in (OPEN, STORED, DONE) or any(type(n) is not int for n in numbers):
            raise BadProgressMarker(topic, payload)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadProgressMarker(topic, payload) from None
    return marker


class Start(Enum):
    """FRESH: from row 0, no packet id is in use. CLEAN: likewise, after the session is deleted. GO_ON: with the window
    of the marker. RELEASE: release the stored rows. NOTHING: all is done."""

    FRESH = "fresh"
    CLEAN = "clean"
    GO_ON = "go on"
    RELEASE = "release"
    NOTHING = "nothing"


def start(
    marker: ProgressMarker | None, batch: int, topic: str, *, session_present: bool, probes: Collection[str]
) -> Start:
    """The start of an attempt at `batch`, from marker and session. probes: of earlier attempts, redelivered

    raises: Overtaken, Doubt
    """
    if marker is None:
        # Rows are sent after the first marker: this session sent none, or its marker was cleared by hand.
        return Start.CLEAN if session_present else Start.FRESH
    if marker.batch > batch:
        raise BatchSuperseded(topic, marker.batch, batch)
    if marker.state == DONE:
        return Start.NOTHING if marker.batch == batch else Start.FRESH
    left = f"batch {marker.batch} was left at row {marker.row}"
    if marker.batch < batch:
        raise Doubt(topic, f"{left}, and Spark went on to batch {batch}")
    if not session_present or not set(probes) & set(marker.sessions):
        raise Doubt(topic, f"{left}, and the broker has lost the session of it")
    return Start.GO_ON if marker.state == OPEN else Start.RELEASE
