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
from rumq.cluster.control.agent_messages import AgentStatus, Claim
from rumq.cluster.control.records import ShardRecord, View

MARKS_NAME = "_cluster/forced.jsonl"  # below the data directory
FORCED = "forced-"

WARNING = """\
shard {shard} of cluster {cluster} goes on with the copy of {node} alone.{kept}
What the replicas {lost} have and {node} has not is given up for ever.
Acknowledged messages that {node} never got are lost; nobody can say how many. If one of those nodes can be started
again, with its disk, do that instead: nothing is lost then. If one of them is only cut off, it must never come back.
"""
KEPT = """
The copies of {kept} are made equal to it, which sends what differs, and then have a vote again."""


def force_leader(dialog: AgentDialog, data: str, shard: int, cluster_name: str, ask: Callable[[str], str]) -> None:
    """ask: shows a prompt and returns what was typed. raises: NotPossible, OrderFailed"""
    status = dialog.status()
    view = current_view(status)
    record = record_of(view, shard)
    check_force(view, shard, record, is_led=not hears_nobody(status, shard))
    lost = [each for each in record.voters if each != view.node]
    forced = forced_record(view, record, FORCED + os.urandom(8).hex())
    warning = WARNING.format(
        shard=shard, cluster=cluster_name, lost=" ".join(lost) or "(none)", node=view.node,
        kept=KEPT.format(kept=" ".join(forced.learners)) if forced.learners else "",
    )  # fmt: skip
    if ask(f"{warning}Type the name of the cluster to go on: ").strip() != cluster_name:
        raise NotPossible("that is not the name of the cluster: nothing was changed")
    leave_mark(Path(data) / MARKS_NAME, shard, record, forced)
    answer = dialog.claim(Claim(1_000_000, shard, view.shards[shard].revision, forced))
    if not answer.known:
        raise OrderFailed("the control plane did not answer; whether it was changed shows `rumqd cluster status`")
    if not answer.won:
        raise OrderFailed(f"shard {shard} has changed meanwhile, so nothing was forced: look at `rumqd cluster status`")


def forced_record(view: View, record: ShardRecord, claim: str) -> ShardRecord:
    """The others that live keep their copies, and the leader makes them members again: it sends what they lack."""
    epoch = record.epoch + 1
    living = [each for each in record.members if each != view.node and view.node_of(each) is not None]
    return ShardRecord(
        epoch=epoch, leader="", claim=claim, replicas=[view.node], learners=living, term=claim,
        config=record.config + 1, forced=epoch,
    )  # fmt: skip


def hears_nobody(status: AgentStatus, shard: int) -> bool:
    """Whether this node's copy hears no leader, as where copies disagree."""
    report = next((each for each in status.reports if each.shard == shard), None)
    return report is not None and report.role == "standby" and report.figures.get("hears_leader") is False


def check_force(view: View, shard: int, record: ShardRecord, *, is_led: bool = True) -> None:
    """raises: NotPossible, where nothing needs to be forced or this node has nothing to go on with"""
    if view.node not in record.members:
        raise NotPossible(
            f"{view.node} has no copy of shard {shard}: ask a node that has one ({' '.join(record.members)})"
        )
    if not is_led:
        return  # it has none, though nodes live: their copies disagree
    for members in filter(None, (record.replicas, record.old_replicas)):
        alive = [each for each in members if view.node_of(each) is not None]
        if len(alive) * 2 <= len(members):
            return
    raise NotPossible(
        f"shard {shard} has a leader, or a majority of its replicas that may soon have one: it needs no force; see"
        " `rumqd cluster status`"
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
