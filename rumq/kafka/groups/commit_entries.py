"""What the file of committed offsets has: entries, by their tags. docs/reference/kafka.md, "Where offsets are kept" """

from __future__ import annotations

from msgspec import Struct


class Commit(Struct, frozen=True, tag="commit", array_like=True):
    """at_ms: since 1970, when it was committed"""

    user: str
    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    at_ms: int


class Forget(Struct, frozen=True, tag="forget", array_like=True):
    """An offset that was deleted, or has expired."""

    user: str
    group: str
    topic: str
    partition: int


Entry = Commit | Forget
