"""Faults between a reader and the server, and their form on the wire: JSON beside the sentence, so that both ends name
the same records.

RumqError
├── BadRequest     the reader's: a ticket or a command that cannot be meant
├── NotAllowed     the reader's: it may not come in, or may not read this
├── Busy           nobody's: too many read at once; it is worth trying again
├── Failed         ours: it is in the events of the server
└── Away           the network's, or no server listens there"""

from __future__ import annotations

import json
from typing import Any

from rumq.errors import RumqError
from rumq.table.errors import BadOption, DataLoss, UnknownOption


class BadRequest(RumqError):
    """what: "ticket", "command" or "action"; problem: what is wrong with it, and what is right."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"rumq: this {self.what} cannot be served: {self.problem}"


class NotAllowed(RumqError):
    """why: without any secret; known: whether the server knows who asks"""

    def __init__(self, why: str, known: bool) -> None:
        super().__init__(why, known)
        self.why, self.known = why, known

    def __str__(self) -> str:
        return f"rumq: refused: {self.why}"


class Busy(RumqError):
    """So many read at once that one more has to come back later."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"rumq: not now: {self.why}"


class Failed(RumqError):
    """A bug, or a disk, of the server's."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"rumq: the server failed: {self.why}"


class Away(RumqError):
    """Nobody answers at `address`, or the connection was lost. why: with the way out"""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address, self.why = address, why

    def __str__(self) -> str:
        return f"rumq: no log is served at {self.address}: {self.why}"


# Those that travel, by their name on the wire; each is rebuilt from its plain arguments.
WIRE_ERRORS: dict[str, type[RumqError]] = {
    "bad_request": BadRequest,
    "not_allowed": NotAllowed,
    "busy": Busy,
    "failed": Failed,
    "data_loss": DataLoss,
    "bad_option": BadOption,
    "unknown_option": UnknownOption,
}
NAMES = {kind: name for name, kind in WIRE_ERRORS.items()}
FIELDS = {"data_loss": ("partition", "first", "next", "why")}


def to_wire(fault: RumqError) -> bytes:
    """A fault of `WIRE_ERRORS` as JSON. Of data loss, by name: partition, first, next (exclusive), why."""
    name = NAMES[type(fault)]
    told: dict[str, Any] = {"error": name}
    if name in FIELDS:
        told |= dict(zip(FIELDS[name], fault.args, strict=True))
    else:
        told["about"] = list(fault.args)
    return json.dumps(told).encode()


def maybe_fault(wire: bytes) -> RumqError | None:
    """The fault that `to_wire` wrote; None for anything else, however malformed."""
    try:
        told = json.loads(wire)
        name = told["error"]
        given = [told[field] for field in FIELDS[name]] if name in FIELDS else told["about"]
        return WIRE_ERRORS[name](*given)
    except (ValueError, TypeError, KeyError):
        return None
