"""What an operator of a cluster should act on, as one node's agent knows it."""

from __future__ import annotations

from collections.abc import Iterator

from rumq.cluster.agent.messages import Status
from rumq.cluster.control.records import ShardRecord


def faults(status: Status) -> Iterator[str]:
    """What an operator should act on, each as one sentence with the way out."""
    view = status.view
    if view is None:
        yield "the control plane has not answered since this node started: check cluster.etcd and the network"
        return
    if not view.is_current:
        yield (
            "the control plane does not answer: publishing goes on, but no leader can change; "
            "this is the state as it was last known"
        )
    alive = {node.id for node in view.nodes}
    for number, each in enumerate(view.shards):
        yield from faults_of_shard(number, each.record, alive)


def faults_of_shard(number: int, record: ShardRecord, alive: set[str]) -> Iterator[str]:
    for members in filter(None, (record.replicas, record.old_replicas)):
        gone = [each for each in members if each not in alive]
        if len(gone) * 2 >= len(members):
            yield (
                f"shard {number}: {len(gone)} of {len(members)} replicas are gone ({' '.join(gone)}), so nothing is "
                "acknowledged: start them again; if their disks are lost for ever: `rumqd cluster force-leader --help`"
            )
            return
        if gone:
            yield (
                f"shard {number}: {' '.join(gone)} of its replicas is gone: start it again, or have another node take "
                f"its place (rumqd cluster move {number} --from {gone[0].partition('#')[0]} --to NODE)"
            )
    if record.leader not in alive:
        yield f"shard {number} has no leader that lives; one of its replicas takes over within seconds"
