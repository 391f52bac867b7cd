"""Bytes of chance by the block: ids are drawn by the dozen, and each call of the system costs more than the span."""

from __future__ import annotations

from collections.abc import Callable

BLOCK_BYTES = 4096


class Chance:
    """random: the source, asked when the first is wanted"""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        self._block = b""
        self._at = 0

    def __call__(self, size: int) -> bytes:
        """So many bytes, at most a block."""
        at = self._at
        if at + size > len(self._block):
            self._block, at = self._random(BLOCK_BYTES), 0
        self._at = at + size
        return self._block[at : self._at]
