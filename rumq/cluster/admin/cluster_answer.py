"""The answer to `cluster`: what one node's agent knows, and what the leaders say of their copies. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rumq.admin import cluster_rows as c
from rumq.admin.answers import Cluster
from rumq.cluster.admin.cluster_faults import faults
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.orders.leader_changes import LeaderChanges


class NodeDisplayNames:
    """Nodes as people call them: by name, where that is one disk only."""

    def __init__(self, view: View) -> None:
        self._alive = {node.name: node.id for node in view.nodes}
        known = {*self._alive.values(), *(each for shard in view.shards for each in shard.record.members)}
        self.gone = sorted(known - set(self._alive.values()))
        self._gone_names = [each.partition("#")[0] for each in self.gone]

    def name_of(self, node: str) -> str:
        name = node.partition("#")[0]
        if self._alive.get(name, node) == node and (name in self._alive or self._gone_names.count(name) < 2):
            return name
        return node

    def all(self, nodes: Sequence[str]) -> list[str]:
        return [self.name_of(each) for each in nodes]

    def is_alive(self, node: str) -> bool:
        return self._alive.get(node.partition("#")[0]) == node


def cluster_answer(
    name: str, status: AgentStatus, renew_seconds: float, changes: LeaderChanges, terms: Mapping[int, c.TermRow],
    *, here: bool = False,
) -> Cluster:  # fmt: skip
    """name: of the cluster; terms: of the leaders that have answered, by shard; here: only this node's were asked"""
    view = status.view
    answer = Cluster(
        enabled=True,
        cluster=name,
        control=control_row(status, renew_seconds),
        wrong=list(faults(status, terms, here=here)),
    )
    if view is None:
        return answer
    names = NodeDisplayNames(view)
    answer.id, answer.node, answer.replicas = view.cluster, names.name_of(view.node), view.replicas
    answer.is_current = view.is_current
    answer.nodes = node_rows(view, names)
    for shard, each in enumerate(view.shards):
        answer.shards.append(shard_copies(shard, each.record, names, changes, terms.get(shard)))
        answer.orders += orders(shard, each.record, names)
    return answer


def node_rows(view: View, names: NodeDisplayNames) -> list[c.NodeRow]:
    """Those that live, then those that have copies and do not."""
    records = [each.record for each in view.shards]

    def leads(node: str) -> list[int]:
        return [shard for shard, record in enumerate(records) if record.leader == node]

    def copies(node: str) -> list[int]:
        return [shard for shard, record in enumerate(records) if node in record.members]

    living = [
        c.NodeRow(
            node=names.name_of(node.id), id=node.id, alive=True, leaves=node.leaves, address=f"{node.host}:{node.port}",
            mqtt=node.mqtt, zone=node.zone, version=node.version, leads=leads(node.id), copies=copies(node.id),
        )
        for node in sorted(view.nodes, key=lambda node: node.id)
    ]  # fmt: skip
    gone = [
        c.NodeRow(node=names.name_of(each), id=each, alive=False, leads=leads(each), copies=copies(each))
        for each in names.gone
    ]
    return living + gone


def shard_copies(
    shard: int, record: ShardRecord, names: NodeDisplayNames, changes: LeaderChanges, term: c.TermRow | None
) -> c.ShardCopies:
    if term is not None and term.epoch < record.epoch:
        term = None  # of a leader that is deposed
    has_leader = names.is_alive(record.leader)
    behind: c.TermRow | None = term if has_leader else None
    return c.ShardCopies(
        shard=shard, leader=names.name_of(record.leader) if has_leader else None, epoch=record.epoch,
        members=names.all(record.voters), learners=names.all(record.learners),
        state=state_of(record, behind) if has_leader else "no leader",
        in_sync=names.all(behind.in_sync) if behind else [],
        behind_records={names.name_of(node): count for node, count in behind.behind_records.items()} if behind else {},
        behind_bytes={names.name_of(node): count for node, count in behind.behind_bytes.items()} if behind else {},
        failovers=changes.failovers[shard], hand_overs=changes.hand_overs[shard],
    )  # fmt: skip


def state_of(record: ShardRecord, term: c.TermRow | None) -> c.ShardState:
    """Of a shard whose leader lives. term: None if it has not answered"""
    if term is None:
        return "unknown"
    if not term.has_quorum:
        return "no quorum"
    if record.old_replicas is not None or record.learners:
        return "changing"
    if not term.is_open:
        return "opening"
    return "ok" if set(record.replicas) <= set(term.in_sync) else "behind"


def orders(shard: int, record: ShardRecord, names: NodeDisplayNames) -> list[c.OrderRow]:
    found = []
    if record.learners:
        found.append(c.OrderRow(shard=shard, order="fill", nodes=names.all(record.learners)))
    if record.old_replicas is not None:
        found.append(c.OrderRow(shard=shard, order="members", nodes=names.all(record.replicas)))
    return found


def control_row(status: AgentStatus, renew_seconds: float) -> c.ControlRow:
    return c.ControlRow(
        kind=status.health.kind, lost_seconds=round(status.lost_seconds, 1), renew_seconds=renew_seconds,
        requests=status.requests,
        members=[
            c.ControlMember(
                endpoint=each.endpoint, answers=not each.why, leads=each.is_leader, version=each.version,
                stored_bytes=each.stored_bytes, seconds=each.seconds, why=each.why,
            )
            for each in status.health.members
        ],
    )  # fmt: skip
