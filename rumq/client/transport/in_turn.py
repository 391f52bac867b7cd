"""Opens a stream to one of several brokers, such as the nodes of a cluster: each attempt begins at the next one.

So a broker that accepts and then does not answer is not asked again at once."""

from collections.abc import Awaitable, Callable, Sequence

import trio

from rumq.errors import ConnectionLost

OpenStream = Callable[[], Awaitable[trio.abc.Stream]]


class InTurn:
    def __init__(self, openers: Sequence[OpenStream]) -> None:
        self._openers, self._next = list(openers), 0

    async def __call__(self) -> trio.abc.Stream:
        """raises: OSError, ConnectionLost: of the last one, once all have been tried"""
        left = len(self._openers)
        while True:
            opener = self._openers[self._next]
            self._next = (self._next + 1) % len(self._openers)
            left -= 1
            try:
                return await opener()
            except (OSError, ConnectionLost):
                if not left:
                    raise
