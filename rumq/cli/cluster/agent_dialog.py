"""Questions to the agent of a node, over the Unix socket in its data directory: one at a time, each answered."""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import (
    SOCKET_NAME,
    AgentMessage,
    AgentStatus,
    AskStatus,
    Claim,
    Claimed,
    DrainNode,
    Order,
    OrderResult,
)
from rumq.errors import RumqError

ANSWER_SECONDS_MAX = 10.0
ORDER_SECONDS_MAX = 120.0  # a learner may have to catch up; later the order goes on without us
Answer = TypeVar("Answer", AgentStatus, OrderResult, Claimed)


class NoAgent(RumqError):
    """Nobody answers for a data directory. why: of the system, or what was waited for"""

    def __init__(self, data: str, why: str) -> None:
        super().__init__(data, why)
        self.data, self.why = data, why

    def __str__(self) -> str:
        return (
            f"no node of a cluster answers for {self.data} ({self.why}): start one with `rumqd run --data {self.data}` "
            "and the [cluster] settings, or name the data directory of one that runs on this machine with --data"
        )


class OrderFailed(RumqError):
    """An order was not carried out. why: the sentence of whoever refused it"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


class AgentDialog:
    """A link to the agent for as long as the block lasts. raises: NoAgent"""

    def __init__(self, data: str, wait: Callable[[], float] = time.monotonic) -> None:
        self._data, self._now = data, wait
        self._requests = itertools.count(1)

    def __enter__(self) -> Self:
        try:
            self._link = AgentSocket(f"{self._data}/{SOCKET_NAME}", "operator")
        except PermissionError as fault:
            fault.filename = fault.filename or f"{self._data}/{SOCKET_NAME}"  # a socket's error names none
            raise
        except OSError as fault:
            raise NoAgent(self._data, fault.strerror or str(fault)) from None
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._link.close()

    def status(self) -> AgentStatus:
        """What the agent knows now."""
        request = next(self._requests)
        return self._answer(AskStatus(request), request, AgentStatus, ANSWER_SECONDS_MAX)

    def order(self, what: str, shard: int, to: str = "", members: list[str] | None = None) -> None:
        """Have the leader of a shard do something, and wait until it is done. raises: OrderFailed"""
        request = next(self._requests)
        done = self._answer(Order(request, what, shard, to, members or []), request, OrderResult, ORDER_SECONDS_MAX)
        if done.why:
            raise OrderFailed(done.why)

    def leave(self, leaves: bool, node: str = "") -> None:
        """Say whether this node gets anything new; node: the id of one that is removed, or is no longer.

        raises: OrderFailed"""
        request = next(self._requests)
        done = self._answer(DrainNode(request, leaves, node), request, OrderResult, ANSWER_SECONDS_MAX)
        if done.why:
            raise OrderFailed(done.why)

    def claim(self, claim: Claim) -> Claimed:
        return self._answer(claim, claim.request, Claimed, ANSWER_SECONDS_MAX)

    def _answer(self, message: AgentMessage, request: int, kind: type[Answer], seconds: float) -> Answer:
        self._link.send(message)
        until = self._now() + seconds
        while (left := until - self._now()) > 0:
            select.select([self._link], [self._link] if self._link.wants_write else [], [], left)
            try:
                for answer in self._link.receive():
                    if isinstance(answer, kind) and answer.request == request:
                        return answer
            except OSError as fault:
                raise NoAgent(self._data, fault.strerror or str(fault)) from None
        raise NoAgent(self._data, f"no answer within {seconds:g} s")
