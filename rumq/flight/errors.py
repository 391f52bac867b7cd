"""Errors of the Flight service, and their form on the wire: JSON beside the message, so that both ends name the same
records.

RumqError
├── BadRequest     the reader's: an invalid ticket or command
├── NotAllowed     the reader's: not authenticated, or not permitted
├── TooManyReads   too many concurrent reads; retry
├── Failed         ours: reported in the server's events
└── Away           the network's, or no server listens there"""

from __future__ import annotations

import json
from typing import Any

from rumq.errors import RumqError
from rumq.table.errors import BadOption, DataLoss, UnknownOption


class BadRequest(RumqError):
    """what: "ticket", "command" or "action"; problem: the fault and the valid form"""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"rumq: this {self.what} cannot be served: {self.problem}"


class NotAllowed(RumqError):
    """why: without any secret; known: whether the caller is authenticated"""

    def __init__(self, why: str, known: bool) -> None:
        super().__init__(why, known)
        self.why, self.known = why, known

    def __str__(self) -> str:
        return f"rumq: refused: {self.why}"


class TooManyReads(RumqError):
    """Too many concurrent reads: retry later."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"rumq: not now: {self.why}"


class Failed(RumqError):
    """A bug or a disk error of the server."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"rumq: the server failed: {self.why}"


class Away(RumqError):
    """No answer from `address`, or the connection was lost. why: with the remedy"""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address, self.why = address, why

    def __str__(self) -> str:
        return f"rumq: no log is served at {self.address}: {self.why}"


# By their name on the wire; each is rebuilt from its plain arguments.
WIRE_ERRORS: dict[str, type[RumqError]] = {
    "bad_request": BadRequest,
    "not_allowed": NotAllowed,
    "busy": TooManyReads,
    "failed": Failed,
    "data_loss": DataLoss,
    "bad_option": BadOption,
    "unknown_option": UnknownOption,
}
NAMES = {kind: name for name, kind in WIRE_ERRORS.items()}
FIELDS = {"data_loss": ("partition", "first", "next", "why")}


def to_wire(fault: RumqError) -> bytes:
    """A fault of `WIRE_ERRORS` as JSON. Data loss has named fields: partition, first, next (exclusive), why."""
    name = NAMES[type(fault)]
    fields: dict[str, Any] = {"error": name}
    if name in FIELDS:
        fields |= dict(zip(FIELDS[name], fault.args, strict=True))
    else:
        fields["about"] = list(fault.args)
    return json.dumps(fields).encode()


def maybe_fault(wire: bytes) -> RumqError | None:
    """The fault that `to_wire` wrote; None for anything else, however malformed."""
    try:
        fields = json.loads(wire)
        name = fields["error"]
        arguments = [fields[field] for field in FIELDS[name]] if name in FIELDS else fields["about"]
        return WIRE_ERRORS[name](*arguments)
    except (ValueError, TypeError, KeyError):
        return None
