"""How much may be held at once: in all, by a network, by a user. A network is an IPv4 address or an IPv6 /64.

No network and no user has more than half, so that nobody takes everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


class KafkaShares:
    """total: of all holders; held: at present; refused: how often there was nothing left"""

    def __init__(self, total: int) -> None:
        self.total = total
        self.held = self.refused = 0
        self._share = max(1, total // 2)
        self._holders: Counter[str] = Counter()

    def free(self, holders: Sequence[str]) -> int:
        """How much these may take."""
        left = min((self._share - self._holders[each] for each in holders), default=self.total)
        return max(0, min(left, self.total - self.held))

    def take(self, amount: int, holders: Sequence[str]) -> bool:
        """Whether there was so much."""
        if self.free(holders) < amount:
            self.refused += 1
            return False
        self.add(amount, holders)
        return True

    def add(self, amount: int, holders: Sequence[str]) -> None:
        """Of what is there already, whatever is free."""
        self.held += amount
        for each in holders:
            self._holders[each] += amount

    def give_back(self, amount: int, holders: Sequence[str]) -> None:
        self.held -= amount
        for each in holders:
            self._holders[each] -= amount
            if not self._holders[each]:
                del self._holders[each]
