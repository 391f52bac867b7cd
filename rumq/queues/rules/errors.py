"""What goes wrong with queues, by whose fault it is; every door maps `kind` to its own status. docs/reference/queues.md

kind          HTTP  gRPC                 whose
not_found     404   NOT_FOUND            the caller's: no such queue, channel or message
exists        409   ALREADY_EXISTS       the caller's: it was created before, with other settings
invalid       400   INVALID_ARGUMENT     the caller's: a name, number or id that cannot be meant
not_allowed   403   PERMISSION_DENIED    the rules do not let this user
full          429   RESOURCE_EXHAUSTED   nobody's: consumers are slower than who pushes
unavailable   503   UNAVAILABLE          the broker's: try again
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from rumq.errors import RumqError

Kind: TypeAlias = Literal["not_found", "exists", "invalid", "not_allowed", "full", "unavailable"]
SHOWN_MAX = 80  # characters of a name in a sentence


class QueueError(RumqError):
    """why: a sentence with what was seen and the way out"""

    kind: ClassVar[Kind] = "unavailable"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


class NoSuchQueue(QueueError):
    """Also of a channel or a message."""

    kind = "not_found"


class QueueExists(QueueError):
    """Also of a channel."""

    kind = "exists"


class BadQueueRequest(QueueError):
    """A name, a number or an id that cannot be meant."""

    kind = "invalid"


class QueueNotAllowed(QueueError):
    """The rules do not let this user."""

    kind = "not_allowed"


class QueueFull(QueueError):
    """depth, depth_max: messages, or bytes, of the bound that was met"""

    kind = "full"

    def __init__(self, why: str, depth: int = 0, depth_max: int = 0) -> None:
        super().__init__(why)
        self.args = (why, depth, depth_max)  # pickle rebuilds an error from them
        self.depth, self.depth_max = depth, depth_max


class QueuesUnavailable(QueueError):
    """The broker does not answer, or a part of it: what was asked may or may not have been done."""

    kind = "unavailable"


def shown(name: str) -> str:
    """A name of a caller, for a sentence."""
    return repr(name) if len(name) <= SHOWN_MAX else f"{name[:SHOWN_MAX]!r}... of {len(name)} characters"
