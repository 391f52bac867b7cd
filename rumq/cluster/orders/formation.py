"""How a cluster begins: the records of shards that have none. Pure; the agent puts them there by compare-and-swap.

Every node comes to the same answer, and the one with the lowest id acts on it; if two do, one of them wins."""

from __future__ import annotations

from collections.abc import Sequence

from rumq.cluster.control.records import NodeRecord, ShardRecord, View
from rumq.cluster.orders.placement import by_zone, first_replicas


class SeveralLogs(Exception):
    """More than one disk has a log: whose it is to be, nobody may choose silently. nodes: ids"""

    def __init__(self, nodes: list[str]) -> None:
        super().__init__(nodes)
        self.nodes = nodes

    def __str__(self) -> str:
        return (
            f"the data directories of {', '.join(self.nodes)} have records from before they joined, and a cluster "
            "begins with one log at most: keep one of them, and start the others with empty data directories"
        )


class LayoutsDiffer(Exception):
    """Nodes have streams of different numbers of partitions. found: by node id"""

    def __init__(self, found: dict[str, dict[str, int]]) -> None:
        super().__init__(found)
        self.found = found
        self.nodes = sorted(found)

    def __str__(self) -> str:
        each = "; ".join(
            f"{node}: {', '.join(f'{name} {count}' for name, count in sorted(layout.items()))}"
            for node, layout in sorted(self.found.items())
        )
        return (
            f"the streams of these nodes have different numbers of partitions ({each}), and each topic must be in the "
            "same partition on all: give all nodes the same [[stream]] settings"
        )


def layout_of(view: View) -> dict[str, int]:
    """The partitions of each stream that the cluster begins with, or has; empty: a node does not say.

    Those of the node that brings its log, or of the nodes that have votes; else all nodes must say the same.
    raises: LayoutsDiffer"""
    voters = {each for shard in view.shards for each in shard.record.replicas}
    nodes = usable_nodes(view.nodes)
    deciding = [node for node in nodes if node.has_log] or [node for node in view.nodes if node.id in voters] or nodes
    found = {node.id: node.partitions for node in deciding}
    if not all(found.values()) or voters - {node.id for node in view.nodes}:
        return {}
    first = next(iter(found.values()), {})
    if any(layout != first for layout in found.values()):
        raise LayoutsDiffer(found)
    return first


def says_layout(view: View) -> bool:
    """Whether it is for this node to note the layout of a cluster that an older version has formed."""
    return (
        view.is_current
        and not view.layout
        and not missing_shards(view)
        and min((node.id for node in view.nodes), default="") == view.node
    )


def missing_shards(view: View) -> list[int]:
    """Shards that have no record, and never had one."""
    return [n for n, each in enumerate(view.shards) if each.revision == 0 and n not in view.epochs_back]


def forms_cluster(view: View) -> bool:
    """Whether it is for this node to make the records that are missing, now."""
    usable = usable_nodes(view.nodes)
    return (
        view.is_current
        and bool(missing_shards(view))
        and len(usable) >= view.replicas
        and min(node.id for node in usable) == view.node
    )


def usable_nodes(nodes: Sequence[NodeRecord]) -> list[NodeRecord]:
    return [node for node in nodes if not node.leaves]


def first_records(view: View, claim: str) -> dict[int, ShardRecord]:
    """By shard number, for those that are missing. claim: for the records. raises: SeveralLogs

    A node that brings its log begins alone, and the others learn from it; its leader makes them members later."""
    nodes = by_zone(usable_nodes(view.nodes))
    with_log = [node.id for node in nodes if node.has_log]
    if len(with_log) > 1:
        raise SeveralLogs(with_log)
    records = {}
    for number in missing_shards(view):
        replicas = first_replicas(number, nodes, view.replicas)
        learners: list[str] = []
        if with_log:
            learners = [each for each in replicas if each not in with_log][: view.replicas - 1]
            replicas = with_log
        records[number] = ShardRecord(epoch=0, leader="", claim=claim, replicas=replicas, learners=learners, term=claim)
    return records
