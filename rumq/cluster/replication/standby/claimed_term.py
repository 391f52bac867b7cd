"""The term that a replica has claimed, and who has promised it. Sans-IO. R1, R2"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.messages import Outdated, Promised


class ClaimedTerm(NamedTuple):
    """epoch, term: of the claim, 0 and "" for none"""

    epoch: int = 0
    term: str = ""

    def is_beaten(self, answer: Outdated) -> bool:
        """Whether a replica has promised another term, of this epoch or a higher one."""
        if answer.promised == self.epoch:
            return answer.term not in ("", self.term)
        return answer.promised > self.epoch

    def is_replaced(self, record: ShardRecord) -> bool:
        """Whether the record is of a later term, or of another one of this epoch."""
        return record.epoch > self.epoch or (record.epoch == self.epoch and record.term not in ("", self.term))


class Promises:
    """by_node: the claimant's own too; began_at: when they were first asked for

    beat_at: when those that have promised are told that this claimant lives"""

    def __init__(self) -> None:
        self.by_node: dict[str, Promised] = {}
        self.began_at = 0.0
        self.beat_at = inf
