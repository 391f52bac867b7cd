"""What is counted of calls: how many by method and status, how long they took, how many are open."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc

from rumq.session.state.histogram import Histogram


class CallFigures:
    """now: monotonic seconds; calls: ended, by method and code; seconds: of calls, by method; open: by method"""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.calls: Counter[tuple[str, str]] = Counter()
        self.seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.open: Counter[str] = Counter()

    @contextmanager
    def counted(self, method: str) -> Iterator[list[grpc.StatusCode]]:
        """One call. The list gets its code; empty: it was cancelled"""
        began = self._now()
        code: list[grpc.StatusCode] = []
        self.open[method] += 1
        try:
            yield code
        finally:
            self.open[method] -= 1
            name = (code[0] if code else grpc.StatusCode.CANCELLED).name
            self.calls[method, name] += 1
            self.seconds[method].observe(self._now() - began)
