"""Who leads a shard, where it is reached, and what its next leader would lose, by a view."""

from __future__ import annotations

from typing import NamedTuple

from rumq.cluster.control.records import ShardRecord, View


class LeaderAddress(NamedTuple):
    """epoch: of the shard; node: its id; host, port: for connections to the shard; is_here: on the view's own node"""

    shard: int
    epoch: int
    node: str
    host: str
    port: int
    is_here: bool


def maybe_leader(view: View | None, shard: int) -> LeaderAddress | None:
    """None: there is none, or its node was never seen. One whose node is away is worth a dial: it may lead all the
    same."""
    if view is None or shard >= len(view.shards):
        return None
    record = view.shards[shard].record
    if not record.leader:
        return None
    node = view.node_of(record.leader) or next((each for each in view.unseen if each.id == record.leader), None)
    if record.leader == view.node:
        host, port = (node.host, node.port) if node is not None else ("", 0)
    elif node is None:
        return None
    else:
        host, port = node.host, node.port
    return LeaderAddress(shard, record.epoch, record.leader, host, port + 1 + shard, record.leader == view.node)


def is_replaced(view: View | None, leader: LeaderAddress) -> bool:
    """Whether another node leads by now. A leader that changes the members of its shard goes on in a higher epoch; one
    that is started again on its node has ended the connections of the one before."""
    return epoch_of(view, leader.shard) > leader.epoch and leader_of(view, leader.shard) != leader.node


def leader_of(view: View | None, shard: int) -> str:
    """The id of the node that leads a shard, also of one that is away; empty: nobody is known."""
    return "" if view is None or shard >= len(view.shards) else view.shards[shard].record.leader


def epoch_of(view: View | None, shard: int) -> int:
    """The highest epoch that is known of a shard; 0 for none."""
    return 0 if view is None or shard >= len(view.shards) else view.shards[shard].record.epoch


def leader_name(view: View | None, shard: int) -> str:
    """The name of the node that leads; empty: nobody is known."""
    return leader_of(view, shard).partition("#")[0]


def leads_here(view: View | None, shard: int) -> bool:
    """Whether the view's own node leads, as far as it knows: the shard itself says whether it does."""
    return view is not None and leader_of(view, shard) == view.node


def unable_nodes(view: View | None, shard: int) -> list[str]:
    """Nodes that may lead a shard next and would lose what it keeps for other processes: of a version before."""
    record = maybe_record(view, shard)
    if record is None or view is None:
        return []
    return [each.name for each in view.nodes if each.id in record.members and not each.keeps]


def maybe_record(view: View | None, shard: int) -> ShardRecord | None:
    """None: it is not known."""
    return None if view is None or shard >= len(view.shards) else view.shards[shard].record
