"""Filters that readers of this shard have, and which of them came or went: what other shards are told."""
# compiled: warm

from __future__ import annotations


class LocalFilters:
    """counts: filter -> groups of this shard's own readers that have it

    changed: filters that came into `counts` or left it since `take_changes`, in order"""

    def __init__(self, *, records_changes: bool) -> None:
        """records_changes: for `take_changes`, which somebody has to call then"""
        self._records_changes = records_changes
        self.counts: dict[str, int] = {}
        self.changed: dict[str, None] = {}

    def add(self, topic_filter: str) -> None:
        """One group more has it."""
        count = self.counts.get(topic_filter, 0) + 1
        self.counts[topic_filter] = count
        if self._records_changes and count == 1:
            self.changed[topic_filter] = None

    def discard(self, topic_filter: str) -> None:
        """One group less has it. raises: KeyError when none had it"""
        count = self.counts[topic_filter] - 1
        if count:
            self.counts[topic_filter] = count
            return
        del self.counts[topic_filter]
        if self._records_changes:
            self.changed[topic_filter] = None

    def take_changes(self) -> tuple[list[str], list[str]]:
        """Filters that (came, left) since the last call."""
        changed, self.changed = self.changed, {}
        return [f for f in changed if f in self.counts], [f for f in changed if f not in self.counts]
