"""Tells who was refused at a node's port: a bounded number of events in a window, and then how many more. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable

TOLD_MAX = 100  # refusals that are reported in a window
WINDOW_SECONDS = 10.0


class RefusalLog:
    """tell: takes events"""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._until = 0.0  # monotonic seconds: end of the window
        self._told = self._left_out = 0

    def refused(self, peer: str, why: str, now: float) -> None:
        """peer: address and port; now: monotonic seconds"""
        self.look(now)
        if not self._told:
            self._until = now + WINDOW_SECONDS
        self._told += 1
        if self._told <= TOLD_MAX:
            self._tell("connection.refused", peer=peer, transport="cluster", why=why)
        else:
            self._left_out += 1

    def look(self, now: float) -> None:
        """Close a window that is over."""
        if not self._told or now < self._until:
            return
        if self._left_out:
            self._tell(
                "refusals.summed", address="", of="connection.refused", count=self._left_out, seconds=WINDOW_SECONDS
            )
        self._told = self._left_out = 0
