"""Which reports of a shard's process its agent needs: those that say something new, and every fifth one.

Each wakes the agent, so a node that does nothing should make few."""

from __future__ import annotations

from rumq.cluster.control.agent_messages import Report

REPEATED_EVERY = 5  # every fifth of equal reports is sent


class ReportFilter:
    def __init__(self) -> None:
        self._last: Report | None = None
        self._left_out = 0

    def wants(self, report: Report) -> bool:
        """Whether to send it."""
        if report == self._last and self._left_out < REPEATED_EVERY - 1:
            self._left_out += 1
            return False
        self._last, self._left_out = report, 0
        return True

    def forget(self) -> None:
        """The agent may be another one, which knows nothing yet: the next report is wanted."""
        self._last = None
