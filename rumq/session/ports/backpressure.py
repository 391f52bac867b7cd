"""Which partitions are behind with writing, as whoever publishes to them sees it."""
# compiled: warm

from __future__ import annotations


class BackpressureBits:
    """Bits of partitions over a limit. behind: everyone pauses; crowded: bulk senders pause"""

    __slots__ = ("behind", "crowded")

    def __init__(self) -> None:
        self.behind = self.crowded = 0
