"""What anybody may hold without a login, bounded: beyond a bound the oldest of the network with the most goes.

A network is an IPv4 address or an IPv6 /64 (`rumq.auth.quota_holder`). So one network can use all that nobody else
wants, and whoever comes is let in at the cost of who has most. No sockets, no clock here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class NetworkShares(Generic[T]):
    """count_max: of all; network_max: of one network, at most count_max; end: is called with each that has to go;
    is_busy: whether one goes only when its network has no other. shed: how many had to go, so far

    Cost of an operation: O(1), of shedding O(networks with as many as the largest, busy ones of it)"""

    def __init__(
        self,
        count_max: int,
        network_max: int,
        end: Callable[[T], None],
        is_busy: Callable[[T], bool] = lambda item: False,
    ) -> None:
        self.count_max, self.network_max = count_max, network_max
        self.shed = 0
        self._end, self._is_busy = end, is_busy
        self._network_of: dict[T, str] = {}
        self._items: dict[str, OrderedDict[T, None]] = {}  # by network, the oldest first
        self._networks: dict[int, dict[str, None]] = {}  # by how many they hold
        self._most = 0

    def __len__(self) -> int:
        return len(self._network_of)

    def __contains__(self, item: T) -> bool:
        return item in self._network_of

    def count_of(self, network: str) -> int:
        return len(self._items.get(network, ()))

    def add(self, item: T, network: str, *, goes_first: bool = False) -> None:
        """Let one in, as the newest of its network; others may have to go for it. One that is in becomes the newest.

        goes_first: as its oldest instead"""
        self.discard(item)
        self._network_of[item] = network
        items = self._items.setdefault(network, OrderedDict())
        items[item] = None
        if goes_first:
            items.move_to_end(item, last=False)
        self._count(network, len(items) - 1, len(items))
        if len(items) > self.network_max:
            self._shed(network)
        while len(self) > self.count_max:
            self.shed_one()

    def discard(self, item: T) -> None:
        """It has left, or is none of these any more."""
        network = self._network_of.pop(item, None)
        if network is None:
            return
        items = self._items[network]
        del items[item]
        self._count(network, len(items) + 1, len(items))
        if not items:
            del self._items[network]

    def shed_one(self) -> None:
        """Have one go although no bound is reached; nothing if there is none."""
        if self._most:
            self._shed(next(iter(self._networks[self._most])))

    def _shed(self, network: str) -> None:
        items = self._items[network]
        victim = next((item for item in items if not self._is_busy(item)), next(iter(items)))
        self.shed += 1
        self.discard(victim)
        self._end(victim)

    def _count(self, network: str, before: int, after: int) -> None:
        if before:
            holders = self._networks[before]
            del holders[network]
            if not holders:
                del self._networks[before]
        if after:
            self._networks.setdefault(after, {})[network] = None
            self._most = max(self._most, after)
        while self._most and self._most not in self._networks:
            self._most -= 1
