"""Where answers come from: the sockets of a broker's data directory, or a gateway over REST. Nothing falls back."""

from __future__ import annotations

from typing import Protocol

import msgspec

from rumq.admin import requests as q
from rumq.cli.ask.questions import Question
from rumq.errors import RumqError


class AskFailed(RumqError):
    """The broker did not answer, or refused. A sentence with the way out."""


class Source(Protocol):
    """name: for people"""

    name: str

    async def ask(self, question: Question, request: q.Request) -> msgspec.Struct:
        """raises: AskFailed"""
        ...

    async def close(self) -> None: ...
