"""`rumqd cluster force-leader`: after a majority of disks is lost, one copy that is left becomes the whole of a shard.

What the lost majority had acknowledged, and this copy never got, is gone. So it asks for the cluster's name, and leaves
a mark: the claim id in the control plane begins with `forced-`, and `<data>/_cluster/forced.jsonl` has a line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rumq.cli.cluster.agent_dialog import AgentDialog, OrderFailed
from rumq.cli.cluster.orders import NotPossible, current_view, record_of
from rumq.cluster.agent.messages import Claim
from rumq.cluster.control.records import ShardRecord, View

MARKS_NAME = "_cluster/forced.jsonl"  # below the data directory
FORCED = "forced-"

WARNING = """\
shard {shard} of cluster {cluster} loses its replicas {lost} for ever, and {node} becomes its only copy.
Acknowledged messages that {node} never got are lost; nobody can say how many. If one of those nodes can be started
again, with its disk, do that instead: nothing is lost then. If one of them is only cut off, it must never come back.
"""


def force_leader(
    dialog: AgentDialog, data: str, shard: int, cluster_name: str, ask: Callable[[str], str]
) -> None:
    """ask: shows a prompt and returns what was typed. raises: NotPossible, OrderFailed"""
    view = current_view(dialog.status())
    record = record_of(view, shard)
    check_force(view, shard, record)
    lost = [each for each in record.voters if each != view.node]
    warning = WARNING.format(
        shard=shard, cluster=cluster_name, lost=" ".join(lost) or "(none)", node=view.node
    )
    if ask(f"{warning}Type the name of the cluster to go on: ").strip() != cluster_name:
        raise NotPossible("that is not the name of the cluster: nothing was changed")
    claim = FORCED + os.urandom(8).hex()
    forced = ShardRecord(epoch=record.epoch + 1, leader="", claim=claim, replicas=[view.node])
    leave_mark(Path(data) / MARKS_NAME, shard, record, forced)
    answer = dialog.claim(Claim(1_000_000, shard, view.shards[shard].revision, forced))
    if not answer.known:
        raise OrderFailed(
            "the control plane did not answer; whether it was changed shows `rumqd cluster status`"
        )
    if not answer.won:
        raise OrderFailed(
            f"shard {shard} has changed meanwhile, so nothing was forced: look at `rumqd cluster status`"
        )


def check_force(view: View, shard: int, record: ShardRecord) -> None:
    """raises: NotPossible, where nothing needs to be forced or this node has nothing to go on with"""
    if view.node not in record.members:
        raise NotPossible(
            f"{view.node} has no copy of shard {shard}: ask a node that has one ({' '.join(record.members)})"
        )
    if shard in view.epochs_back:
        return  # the record is an old one, and nobody else puts it right
    for members in filter(None, (record.replicas, record.old_replicas)):
        alive = [each for each in members if view.node_of(each) is not None]
        if len(alive) * 2 <= len(members):
            return
    raise NotPossible(
        f"shard {shard} has a majority of its replicas alive: it needs no force; see `rumqd cluster status`"
    )


def leave_mark(path: Path, shard: int, before: ShardRecord, after: ShardRecord) -> None:
    """On disk before anything is changed: whoever looks for a loss later finds when and what."""
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "user": os.environ.get("SUDO_USER") or os.getuid(),
        "shard": shard, "before": msgspec.to_builtins(before), "after": msgspec.to_builtins(after),
    }  # fmt: skip
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())
