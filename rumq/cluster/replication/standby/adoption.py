"""Which log a claimant adopts, and from whom it fetches what it lacks. Sans-IO. docs/explanation/replication.md, R3.

What cannot be after crashes alone, because a disk or the control plane went back in time, is a doubt: nothing is
adopted, and nothing is cut."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.copy_change import change_copy
from rumq.cluster.replication.ports import DataFrame, LogCopies, ReplicaState


def maybe_doubt(promised: Mapping[str, m.Promised]) -> str | None:
    """Why no log among those of a majority may be adopted; None: one has all that was committed. promised: by node"""
    sound = {peer: each for peer, each in promised.items() if each.opened != m.DOUBTED}
    best = max(each.opened for each in sound.values())
    latest = {peer: each for peer, each in sound.items() if each.opened == best}
    terms = {each.opened_term: peer for peer, each in sorted(latest.items()) if each.opened_term}
    if len(terms) > 1:
        return f"{' and '.join(sorted(terms.values()))} have logs of different leaders of epoch {best}"
    for peer, each in sorted(promised.items()):
        for partition, mark in sorted((each.marks or {}).items()):
            end = max(one.ends.get(partition, 0) for one in latest.values())
            if mark > end:
                return (
                    f"{peer} knows that {partition} is committed up to lsn {mark}, and the newest log, of"
                    f" {' '.join(sorted(latest))}, ends at {end}"
                )
    return None


class Adoption:
    """source: the replica that is being read, "" for none; is_short: it had less than it had promised with"""

    def __init__(
        self, epoch: int, node: str, promised: Mapping[str, m.Promised], logs: LogCopies, state: ReplicaState,
        effects: list[fx.Effect],
    ) -> None:  # fmt: skip
        self._epoch, self._logs, self._state, self._effects = epoch, logs, state, effects
        self.source = ""
        self.is_short = False
        self._partition = ""
        self._end = 0  # of the partition that is read, as the source has promised it
        own = promised[node]
        # The replicas that took over the last leader's log have everything that was ever committed, together.
        best = max(each.opened for each in promised.values() if each.opened != m.DOUBTED)
        latest = {peer: each for peer, each in promised.items() if each.opened == best}
        self._questions: list[tuple[str, str, int]] = []
        for partition in sorted({p for each in promised.values() for p in each.ends}):
            ends = {peer: each.ends.get(partition, 0) for peer, each in latest.items()}
            longest = max(ends.values())
            if own.opened == best and ends[node] == longest:
                continue
            source = next(peer for peer, end in sorted(ends.items()) if end == longest)
            self._questions.append((source, partition, longest))

    def next_question(self) -> tuple[str, m.FetchCopy] | None:
        """(whom, what) to ask next; None: this replica has the log."""
        if not self._questions:
            self.source = ""
            return None
        self.source, self._partition, self._end = self._questions.pop(0)
        return self.source, m.FetchCopy(self._epoch, self._partition, self._logs.inventory(self._partition))

    def took(self, peer: str, message: m.ReplicaMessage, raw: memoryview) -> bool:
        """Apply an answer; whether it was the last one. raises: OSError, LogError

        A source that was emptied since its promise sends less: `is_short` then."""
        if peer != self.source or getattr(message, "partition", "") != self._partition:
            return False
        if isinstance(message, m.Fetched):
            self._logs.sync()
            self.is_short = self._logs.ends()[self._partition] < self._end
            return True
        if isinstance(message, DataFrame):
            change_copy(message, raw, self._logs, self._state, self._effects)
        return False
