"""Who leads a shard, and where it is reached, by a view."""

from __future__ import annotations

from typing import NamedTuple

from rumq.cluster.control.records import View


class Leader(NamedTuple):
    """epoch: of the shard; node: its id; host, port: for connections to the shard; is_here: on the view's own node"""

    shard: int
    epoch: int
    node: str
    host: str
    port: int
    is_here: bool


def maybe_leader(view: View | None, shard: int) -> Leader | None:
    """None: there is none, or its node is away."""
    if view is None or shard >= len(view.shards):
        return None
    record = view.shards[shard].record
    if not record.leader:
        return None
    node = view.node_of(record.leader)
    if record.leader == view.node:
        host, port = (node.host, node.port) if node is not None else ("", 0)
    elif node is None:
        return None
    else:
        host, port = node.host, node.port
    return Leader(shard, record.epoch, record.leader, host, port + 1 + shard, record.leader == view.node)


def epoch_of(view: View | None, shard: int) -> int:
    """The highest epoch that is known of a shard; 0 for none."""
    return 0 if view is None or shard >= len(view.shards) else view.shards[shard].record.epoch
