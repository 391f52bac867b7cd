"""Bytes that wait for the broker, of all calls: within shares, and with a wait for who streams."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rumq.services.access.shares import Holder, Shares


class WaitingBytes:
    """shares: of them"""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._freed = asyncio.Event()

    @contextmanager
    def hold(self, size: int, holders: Sequence[Holder]) -> Iterator[None]:
        """raises: CallFault where there is no room"""
        self._shares.take(size, holders)
        try:
            yield
        finally:
            self.give_back(size, holders)

    async def room(self, size: int, holders: Sequence[Holder]) -> None:
        """Wait until so many more bytes may wait for the broker; they are taken then."""
        while not self._shares.fits(size, holders):
            await self._freed.wait()
        self._shares.take(size, holders)

    def give_back(self, size: int, holders: Sequence[Holder]) -> None:
        self._shares.give_back(size, holders)
        self._freed.set()
        self._freed = asyncio.Event()
