"""Frames that wait for a socket to take them."""
# compiled: hot

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from rumq.net.frames import Raw, encode

OUTBOX_BYTES = 8 << 20
PARTS_MAX = 64  # of one sendmsg(2)
Supply = Iterator[tuple[Any, Sequence[Raw]]]


class FrameOutbox:
    """supply: messages that are taken as the socket takes them, behind those that were put"""

    def __init__(self) -> None:
        self.supply: Supply | None = None
        self._parts: deque[memoryview] = deque()
        self._size = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and nothing is supplied."""
        return not self._parts and self.supply is None

    def put(self, message: Any, raw: Sequence[Raw] = ()) -> None:
        for part in encode(message, raw):
            self._parts.append(memoryview(part).cast("B"))
            self._size += len(part)

    def put_bytes(self, data: bytes) -> None:
        """Bytes that are no frame, behind the last one."""
        self._parts.append(memoryview(data))
        self._size += len(data)

    def first_parts(self) -> list[memoryview]:
        """What is to be sent next, [] for nothing; of the supply as much as the outbox has room for."""
        while self.supply is not None and self._size < OUTBOX_BYTES // 2:
            following = next(self.supply, None)
            if following is None:
                self.supply = None
            else:
                self.put(*following)
        return [self._parts[at] for at in range(min(PARTS_MAX, len(self._parts)))]

    def sent(self, size: int) -> None:
        """So many bytes were."""
        self._size -= size
        while size:
            first = self._parts[0]
            if len(first) > size:
                self._parts[0] = first[size:]
                return
            size -= len(first)
            self._parts.popleft()
