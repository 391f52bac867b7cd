"""`rumqd cluster status`: what is wrong, then nodes, shards and the control plane as one node's agent knows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rumq.cluster.admin.cluster_faults import faults
from rumq.cluster.control.agent_messages import AgentStatus, Report
from rumq.cluster.control.records import NodeRecord, ShardRecord, View

Row = Sequence[str]


def print_status(status: AgentStatus, *, as_json: bool) -> int:
    """Returns the exit status: 1 if something is wrong."""
    terms = None if status.terms is None else {each.shard: each for each in status.terms}
    wrong = list(faults(status, terms))
    if as_json:
        print(json.dumps({"health": "wrong" if wrong else "ok"} | as_object(status) | {"wrong": wrong}))
    else:
        print(f"health: {f'{len(wrong)} wrong' if wrong else 'ok'}")
        for each in wrong:
            print(f"wrong: {each}")
        for line in lines(status):
            print(line)
    return 1 if wrong else 0


def as_object(status: AgentStatus) -> dict[str, Any]:
    """Plain objects and lists: the keys are those of the records (`rumq.cluster.control.records`)."""
    view = status.view
    return {
        "cluster": view.cluster if view else None,
        "node": view.node if view else None,
        "is_current": bool(view and view.is_current),
        "lost_seconds": status.lost_seconds,
        "replicas": view.replicas if view else None,
        "nodes": [msgspec.to_builtins(each) | {"name": each.name} for each in view.nodes] if view else [],
        "shards": [
            {"shard": number, "revision": each.revision, **msgspec.to_builtins(each.record)}
            for number, each in enumerate(view.shards if view else [])
        ],
        "here": [
            {"shard": each.shard, "role": each.role, "epoch": each.epoch, **each.figures} for each in status.reports
        ],
        "processes": [{"role": each.role, "shard": each.shard, "pid": each.pid} for each in status.processes],
        "control": msgspec.to_builtins(status.health) | {"requests": status.requests},
    }


def lines(status: AgentStatus) -> Iterator[str]:
    view = status.view
    yield from control_lines(status)
    if view is None:
        return
    yield f"cluster {view.cluster}, {view.replicas} copies of each shard wanted; asked {view.node}"
    yield ""
    yield from table(
        ("node", "disk", "zone", "address", "mqtt", "version", "leads", "copies", "state"), node_rows(view)
    )
    yield ""
    shards = [shard_row(number, each.record, view, status.reports) for number, each in enumerate(view.shards)]
    yield from table(("shard", "epoch", "leader", "replicas", "learners", "here", "behind"), shards)


def control_lines(status: AgentStatus) -> Iterator[str]:
    away = f"; it has not answered for {status.lost_seconds:.0f} s" if status.lost_seconds else ""
    yield f"control plane: {status.health.kind}, {len(status.health.members)} members{away}"
    for member in status.health.members:
        if member.why:
            yield f"  {member.endpoint}  does not answer: {member.why}"
        else:
            leads = "leader" if member.is_leader else "member"
            size, took = member.stored_bytes / 2**20, 1000 * member.seconds
            yield f"  {member.endpoint}  {leads}, version {member.version}, {size:.1f} MiB, answers in {took:.1f} ms"


def node_rows(view: View) -> Iterator[Row]:
    """Nodes that live, then those that have copies and do not."""
    records = [each.record for each in view.shards]
    alive = {node.id for node in view.nodes}
    for node in sorted(view.nodes, key=lambda node: node.id):
        yield (
            node.name, node.id.partition("#")[2], node.zone or "-", f"{node.host}:{node.port}",
            " ".join(node.mqtt) or "-", node.version, *counts(node.id, records), state_of(node, view),
        )  # fmt: skip
    for gone in sorted({each for record in records for each in record.members} - alive):
        name, _, disk = gone.partition("#")
        yield name, disk, "-", "-", "-", "-", *counts(gone, records), "gone"


def state_of(node: NodeRecord, view: View) -> str:
    return "removed" if node.id in view.removed else "leaves" if node.leaves else "alive"


def counts(node: str, records: Sequence[ShardRecord]) -> Row:
    return str(sum(each.leader == node for each in records)), str(sum(node in each.members for each in records))


def shard_row(number: int, record: ShardRecord, view: View, reports: Sequence[Report]) -> Row:
    here = next((each for each in reports if each.shard == number), None)
    replicas = " ".join(display_name(each, view) for each in record.replicas)
    if record.old_replicas is not None:
        replicas += f" (until now {' '.join(display_name(each, view) for each in record.old_replicas)})"
    return (
        str(number), str(record.epoch), display_name(record.leader, view), replicas,
        " ".join(display_name(each, view) for each in record.learners) or "-",
        here.role if here else "-", behind(here) if here else "-",
    )  # fmt: skip


def behind(report: Report) -> str:
    """Followers that lack records of the leader, with how many; only the leader knows."""
    found = report.figures.get("behind")
    if not isinstance(found, dict):
        return "-"
    return " ".join(f"{node.partition('#')[0]}:{count}" for node, count in found.items() if count) or "0"


def display_name(node: str, view: View) -> str:
    """The name of a node; in brackets if it does not live."""
    if not node:
        return "none"
    name = node.partition("#")[0]
    return name if view.node_of(node) is not None else f"({name})"


def table(head: Row, rows: Iterator[Row] | Sequence[Row]) -> Iterator[str]:
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
