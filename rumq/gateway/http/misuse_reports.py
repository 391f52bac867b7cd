"""Clients that misuse the gateway, as events: each kind at its 1st, 2nd, 4th, 8th ... time, so that a flood is told and
does not flood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

Kind = Literal["token", "body"]


class MisuseReports:
    def __init__(self, event: Callable[..., None]) -> None:
        self.event = event
        self._refused: Counter[Kind] = Counter()

    def refused(self, kind: Kind, address: str, why: str) -> None:
        self._refused[kind] += 1
        if is_told(self._refused[kind]):
            self.event("gateway.refused", address=address, why=why, refused=self._refused[kind])

    def shed(self, connections: int, count: int) -> None:
        """connections: as many as there may be; count: closed to make room, so far"""
        if is_told(count):
            self.event("gateway.overloaded", connections=connections, turned_away=count)

    def failed(self) -> None:
        """A bug of ours, while it is handled: it ends the connection where it happened, and no other."""
        self.event("gateway.failed", exc_info=True)


def is_told(count: int) -> bool:
    return count & (count - 1) == 0
