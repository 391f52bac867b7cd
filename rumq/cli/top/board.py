"""What is known of the broker: the newest answers, figures of the last minutes, and whether it still answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.cli.ask.questions import question_of
from rumq.cli.ask.source import AskFailed, Source
from rumq.cli.top.samples import Samples
from rumq.cli.top.state import TopState

STATUS_SECONDS = 5.0  # disk and uptime: of the slow figures


@dataclass(slots=True)
class Board:
    """question: what `answer` answers; problem: why the last refresh failed; seconds: that it took"""

    source: Source
    now: Callable[[], float]
    samples: Samples = field(default_factory=Samples)
    status: a.Status | None = None
    question: str = ""
    answer: msgspec.Struct | None = None
    problem: str = ""
    seconds: float = 0.0
    _status_at: float = float("-inf")

    async def refresh(self, state: TopState, rows: int) -> None:
        """Ask anew; a failure is a `problem`, and what was known stays. rows: that fit on the screen"""
        began = self.now()
        name, request = state.request(rows)
        try:
            metrics = await self._ask("metrics", q.Nothing())
            assert isinstance(metrics, a.Metrics)
            self.samples.add(metrics, began)
            if began - self._status_at >= STATUS_SECONDS:
                status = await self._ask("status", q.Nothing())
                assert isinstance(status, a.Status)
                self.status, self._status_at = status, began
            self.question, self.answer = name, await self._ask(name, request)
            self.problem = ""
        except AskFailed as fault:
            self.problem = str(fault)
        self.seconds = self.now() - began

    async def _ask(self, name: str, request: q.Request) -> msgspec.Struct:
        return await self.source.ask(question_of(name), request)
