"""Whether the copies of a shard may be packed: all that have one are here, and know packed files. Pure."""

from __future__ import annotations

from rumq.cluster.control.records import View


def all_pack(view: View, shard: int) -> bool:
    """An earlier version takes what it has of a segment for a part of what its leader has, byte for byte: while one may
    come, files stay as they are. So they do while a node is away: what it lacks is sent by bytes when it is back."""
    if not view.is_current or shard >= len(view.shards):
        return False
    able = {each.id for each in view.nodes if each.packs}
    members = view.shards[shard].record.members
    return bool(members) and able.issuperset(members)
