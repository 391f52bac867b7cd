"""Which partitions are behind with writing, as whoever publishes to them sees it."""
# compiled: warm

from __future__ import annotations


class BackpressureBits:
    """Bits of partitions over a limit. behind: everyone pauses; crowded: bulk senders pause

    modest: of partitions to which a client has published a little that sends no bulk, until that is looked at"""

    __slots__ = ("behind", "crowded", "modest")

    def __init__(self) -> None:
        self.behind = self.crowded = self.modest = 0
