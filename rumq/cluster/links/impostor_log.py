"""Tells that what answers at a node's address is not that node: once for each in a while, however often it is dialled.

Sans-IO."""

from __future__ import annotations

from collections.abc import Callable

QUIET_SECONDS = 10.0


class ImpostorLog:
    """tell: takes events"""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._told_at: dict[str, float] = {}  # by node; there are as many as the view has

    def met(self, node: str, why: str, now: float) -> None:
        """node: id of whom was dialled; now: monotonic seconds"""
        if now - self._told_at.get(node, float("-inf")) >= QUIET_SECONDS:
            self._told_at[node] = now
            self._tell("cluster.certificate_refused", node=node, why=why)
