"""Whether the copies of a shard may be packed: all that have one are here, and know packed files, for a while now.

Pure."""

from __future__ import annotations

from math import inf

from rumq.cluster.control.records import View

PATIENCE_SECONDS = 10.0  # three leases of a node: more than it takes until everybody sees that one is away


def all_pack(view: View, shard: int) -> bool:
    """An earlier version takes what it has of a segment for a part of what its leader has, byte for byte: while one may
    come, files stay as they are. So they do while a node is away: what it lacks is sent by bytes when it is back."""
    if not view.is_current or shard >= len(view.shards):
        return False
    able = {each.id for each in view.nodes if each.packs}
    members = view.shards[shard].record.members
    return bool(members) and able.issuperset(members)


class PackingPatience:
    """A change of leaders ends segments, and often it comes because a node has just gone, which is seen later: its copy
    would end inside a segment that is packed meanwhile, and if it came back with an earlier version, it could not be
    fed."""

    def __init__(self, shard: int) -> None:
        self._shard = shard
        self._since, self._epoch = inf, -1

    def seen(self, view: View, now: float) -> None:
        """A view of the cluster. now: monotonic seconds, as below"""
        epoch = view.shards[self._shard].record.epoch if self._shard < len(view.shards) else -1
        if not all_pack(view, self._shard):
            self._since = inf
        elif self._since == inf or epoch != self._epoch:
            self._since = now
        self._epoch = epoch

    def is_over(self, now: float) -> bool:
        return now - self._since >= PATIENCE_SECONDS
