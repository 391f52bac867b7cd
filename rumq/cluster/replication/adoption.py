"""Which log a claimant adopts, and from whom it fetches what it lacks. Sans-IO. docs/replication.md, R3."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import DataFrame, LogCopies


class Adoption:
    """source: the replica that is being read, "" for none"""

    def __init__(self, epoch: int, node: str, promised: Mapping[str, m.Promised], logs: LogCopies) -> None:
        self._epoch, self._logs = epoch, logs
        self.source = ""
        self._partition = ""
        own = promised[node]
        # The replicas that took over the last leader's log have everything that was ever committed, together.
        best = max(each.opened for each in promised.values() if each.opened != m.DOUBTED)
        latest = {peer: each for peer, each in promised.items() if each.opened == best}
        self._questions: list[tuple[str, str]] = []
        for partition in sorted({p for each in promised.values() for p in each.ends}):
            ends = {peer: each.ends.get(partition, 0) for peer, each in latest.items()}
            longest = max(ends.values())
            if own.opened == best and ends[node] == longest:
                continue
            source = next(peer for peer, end in sorted(ends.items()) if end == longest)
            self._questions.append((source, partition))

    def next_question(self) -> tuple[str, m.Fetch] | None:
        """(whom, what) to ask next; None: this replica has the log."""
        if not self._questions:
            self.source = ""
            return None
        self.source, self._partition = self._questions.pop(0)
        return self.source, m.Fetch(self._epoch, self._partition, self._logs.inventory(self._partition))

    def took(self, peer: str, message: m.ReplicaMessage, raw: memoryview) -> bool:
        """Apply an answer; whether it was the last one. raises: OSError, LogError"""
        if peer != self.source or getattr(message, "partition", "") != self._partition:
            return False
        if isinstance(message, m.Fetched):
            self._logs.sync()
            return True
        if isinstance(message, DataFrame):
            self._logs.apply(message, raw)
        return False
