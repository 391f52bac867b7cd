"""Which client ids the publisher numbers of our partitions stand for, told to another shard whose subscribers ask.

Numbers are given in order and never change while a partition is open, so only how many have been told is kept. What
names rows is said before the rows are. A shard that never asks is told nothing. Knows no client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.messages import Publishers

NAMES_A_MESSAGE = 4096


class PublisherNames:
    """To one other shard, over one link."""

    def __init__(self, link: BusLink, partitions: Iterable[Any]) -> None:
        """partitions: ours"""
        self._link = link
        self._names: dict[int, list[bytes]] = {p.index: p.publisher_names for p in partitions}
        self._told = dict.fromkeys(self._names, 1)  # number 0 is nobody's

    def introduce(self, index: int) -> None:
        """Tell the names of a partition that are new. Cost: a comparison when there are none."""
        names, told = self._names[index], self._told[index]
        if told < len(names):
            for first in range(told, len(names), NAMES_A_MESSAGE):
                self._link.say(Publishers(index, first, names[first : first + NAMES_A_MESSAGE]))
            self._told[index] = len(names)

    def introduce_all(self) -> None:
        for index in self._names:
            self.introduce(index)
