"""How many calls may be open, and how many bytes may wait for the broker: in all, of a connection, a network, a user.

A network is an IPv4 address or an IPv6 /64. No network and no user has more than half, so that nobody takes everything.
A caller gets what is free, or is refused at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rumq.services.contract.faults import CallFault

Holder = tuple[str, str]  # kind, such as "network", and name


class ShareBound(NamedTuple):
    """What is counted. key: the setting that bounds it; unit: for people; reason: of the refusal"""

    key: str
    unit: str
    reason: str
    total: int


CONNECTION_CALLS_MAX = 100


class Shares:
    """Of one bound. held: in all"""

    def __init__(self, bound: ShareBound, of_connection: int = 0) -> None:
        """of_connection: bound of one connection; 0: none of its own"""
        self._bound, self._of_connection = bound, of_connection
        self._share = max(1, bound.total // 2)
        self._holders: Counter[Holder] = Counter()
        self.held = 0
        self.refused = 0

    @contextmanager
    def hold(self, amount: int, holders: Sequence[Holder]) -> Iterator[None]:
        """raises: CallFault"""
        self.take(amount, holders)
        try:
            yield
        finally:
            self.give_back(amount, holders)

    def take(self, amount: int, holders: Sequence[Holder]) -> None:
        """raises: CallFault. More than the share of a holder who holds nothing is given, to one at a time."""
        bound = self._bound
        if self.held and self.held + amount > bound.total:
            self.refused += 1
            raise CallFault(
                bound.reason, f"{bound.key} = {bound.total} {bound.unit} are in use: try again later",
                setting=bound.key, limit=bound.total,
            )  # fmt: skip
        for kind, name in holders:
            most = self._of_connection if kind == "connection" else self._share
            if kind == "connection" and not most:
                continue
            held = self._holders[kind, name]
            if held and held + amount > most:
                self.refused += 1
                whose = "of grpc" if kind == "connection" else f"half of {bound.key}"
                raise CallFault(
                    bound.reason,
                    f"this {kind} has {held} {bound.unit} in use, and {most} are its share, {whose}: use fewer at once",
                    setting=bound.key, limit=most, holder=kind,
                )  # fmt: skip
        self.held += amount
        for holder in holders:
            self._holders[holder] += amount

    def give_back(self, amount: int, holders: Sequence[Holder]) -> None:
        self.held -= amount
        for holder in holders:
            self._holders[holder] -= amount
            if not self._holders[holder]:
                del self._holders[holder]

    def fits(self, amount: int, holders: Sequence[Holder]) -> bool:
        """Whether `take` would not refuse."""
        if self.held and self.held + amount > self._bound.total:
            return False
        return all(
            kind == "connection" or not self._holders[kind, name] or self._holders[kind, name] + amount <= self._share
            for kind, name in holders
        )
