"""Publishers wait when the partition they publish to is behind: their sockets are not read, and nobody else notices.

Knows no socket: a link is told to pause, and to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumq.shards.writing import Writing


class Slowing:
    """behind: bit p says that partition p has more unwritten bytes than it may."""

    def __init__(
        self, writing: Writing, store: Any, pending_bytes_max: int, event: Callable[..., None]
    ) -> None:
        self._writing, self.pending_bytes_max, self._event = writing, pending_bytes_max, event
        self._parts = [(1 << p.index, p.outgoing if p.is_mirrored else p) for p in store.partitions]
        self.behind = 0
        self._slowed: list[tuple[Any, int]] = []

    def look(self) -> None:
        """At the end of a turn: which partitions are behind now; tell when that begins and ends."""
        behind = 0
        for bit, partition in self._parts:
            if partition.pending_bytes > self.pending_bytes_max:
                behind |= bit
        if behind != self.behind:
            self.behind, before = behind, self.behind
            if not before:
                self._event("publish.slowed", pending_bytes=self._writing.pending_bytes)
            elif not behind:
                self._event("publish.resumed", pending_bytes=self._writing.pending_bytes)
        if self._slowed and any(not parts & behind for _, parts in self._slowed):
            slowed, self._slowed = self._slowed, []
            for link, parts in slowed:
                if parts & behind:
                    self._slowed.append((link, parts))
                else:
                    link.transport.release()

    def slow(self, link: Any) -> None:
        """The link has published to a partition that is behind."""
        self._slowed.append((link, self.behind & link.wire.touched))
        link.transport.hold()
