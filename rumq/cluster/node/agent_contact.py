"""The link of a shard's process that does not lead to the agent of its node, which may start later, or again."""

from __future__ import annotations

import selectors
from collections.abc import Callable

from rumq.cluster.connections.agent_socket import STARTING, AgentSocket
from rumq.cluster.connections.report_filter import ReportFilter
from rumq.cluster.control.agent_messages import AgentMessage, Claim, Report

REPORT_SECONDS = 1.0
AGENT_SECONDS = 0.2  # between two attempts to reach the agent


class AgentContact:
    """agent: None while there is no link"""

    def __init__(
        self, path: str, shard: int, selector: selectors.BaseSelector, heard: Callable[[AgentMessage], None],
        lost: Callable[[], None], tell: Callable[..., None],
    ) -> None:  # fmt: skip
        """path: of the agent's socket; lost: called when the link has ended; tell: takes events"""
        self._path, self._shard, self._selector = path, shard, selector
        self._heard, self._lost, self._tell = heard, lost, tell
        self.agent: AgentSocket | None = None
        self._has_told = False
        self._reports = ReportFilter()
        self._meet_at = self._report_at = 0.0

    def meet(self, now: float) -> None:
        """Try to reach the agent, now and then. now: monotonic seconds"""
        if self.agent is not None or now < self._meet_at:
            return
        self._meet_at = now + AGENT_SECONDS
        try:
            self.agent = AgentSocket(self._path, "shard", self._shard)
        except OSError as fault:
            if fault.errno not in STARTING and not self._has_told:
                self._has_told = True
                self._tell("cluster.agent_unreachable", path=self._path, why=str(fault))
            return  # it starts, or is started again
        self._reports.forget()
        self._selector.register(self.agent.fileno(), selectors.EVENT_READ, self._hear)

    def _hear(self) -> None:
        assert self.agent is not None
        fd = self.agent.fileno()
        try:
            messages = self.agent.receive()
        except OSError:
            self._selector.unregister(fd)
            self.agent.close()
            self.agent = None
            self._lost()
            return
        for message in messages:
            self._heard(message)

    def claim(self, claim: Claim) -> bool:
        """returns: whether it was sent"""
        if self.agent is None:
            return False
        self.agent.send(claim)
        return True

    def report(self, now: float, make: Callable[[], Report]) -> None:
        """Now and then, what has changed. now: monotonic seconds"""
        if self.agent is None or now < self._report_at:
            return
        self._report_at = now + REPORT_SECONDS
        report = make()
        if self._reports.wants(report):
            self.agent.send(report)

    def close(self) -> None:
        if self.agent is not None:
            self.agent.close()
