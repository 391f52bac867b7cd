"""What a gateway answers instead of doing it."""

from collections.abc import Mapping
from typing import NamedTuple

from rumq.errors import ClientError

TEMPORARY = frozenset({"unavailable", "too-many-watchers", "too-many-consumers"})
WAY_OUT = "pass gateway='http://HOST:PORT' and token=TOKEN to connect(), or connect to ws://HOST:PORT/mqtt of it"


class PushRefusal(NamedTuple):
    """Why one message of several was not taken. kind: "full", "invalid", "not_allowed" or "unavailable" """

    kind: str
    why: str


class QueueRefused(ClientError):
    """The gateway said no. kind: of docs/reference/gateway.md, "Problems": "not-found", "conflict", "forbidden",
    "queue-full", "refused-pushes", "unavailable" ...

    what: was asked; detail: the reason and the way out; refused: of a push, number of the message -> why; the others
    are pushed, and have their `ids`"""

    def __init__(
        self, what: str, kind: str, detail: str, refused: Mapping[int, PushRefusal] | None = None,
        ids: tuple[str | None, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(what, kind, detail, refused, ids)
        self.what, self.kind, self.detail = what, kind, detail
        self.refused, self.ids = dict(refused or {}), ids

    @property
    def is_temporary(self) -> bool:
        return self.kind in TEMPORARY

    def __str__(self) -> str:
        return f"{self.what} was refused ({self.kind}): {self.detail}"
