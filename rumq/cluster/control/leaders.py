"""Who leads a shard, and where it is reached, by a view."""

from __future__ import annotations

from typing import NamedTuple

from rumq.cluster.control.records import HANDED_OVER, View


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


def is_planned(before: View | None, now: View, shard: int) -> bool:
    """Whether the leader of a shard has changed as the one before wanted, after it had stopped taking anything.

    before: the view until then"""
    if before is None or max(shard + 1 - len(before.shards), shard + 1 - len(now.shards)) > 0:
        return False
    was, record = before.shards[shard].record, now.shards[shard].record
    if record.epoch != was.epoch + 1 or not record.claim.startswith(HANDED_OVER):
        return False
    node = before.node_of(was.leader)
    return node is not None and node.moves


def epoch_of(view: View | None, shard: int) -> int:
    """The highest epoch that is known of a shard; 0 for none."""
    return 0 if view is None or shard >= len(view.shards) else view.shards[shard].record.epoch
