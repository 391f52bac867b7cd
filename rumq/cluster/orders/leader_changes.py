"""Counts the changes of leaders that this node's agent has seen since it started. No clock, no I/O."""

from __future__ import annotations

from collections import Counter

from rumq.cluster.control.records import HANDED_OVER, View


class LeaderChanges:
    """failovers, hand_overs: by shard"""

    def __init__(self) -> None:
        self.failovers: Counter[int] = Counter()
        self.hand_overs: Counter[int] = Counter()
        self._seen: dict[int, tuple[int, str]] = {}  # by shard: (epoch, leader)

    def note(self, view: View) -> None:
        for shard, each in enumerate(view.shards):
            record = each.record
            epoch, leader = self._seen.get(shard, (0, ""))
            if record.epoch <= epoch:
                continue
            self._seen[shard] = (record.epoch, record.leader)
            if leader and record.leader != leader:
                asked = record.claim.startswith(HANDED_OVER)
                (self.hand_overs if asked else self.failovers)[shard] += 1
