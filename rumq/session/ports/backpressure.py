"""Which partitions are behind with writing, as whoever publishes to them sees it."""
# compiled: warm

from __future__ import annotations


class BackpressureBits:
    """Bits of partitions over a limit. behind: everyone pauses; crowded: bulk senders pause

    bulk: of partitions that a client has published to in bulk, until that is looked at
    modest: likewise a little, of a client that sends no bulk"""

    __slots__ = ("behind", "bulk", "crowded", "modest")

    def __init__(self) -> None:
        self.behind = self.bulk = self.crowded = self.modest = 0
