"""Whether a node fits the cluster that it finds, and what the operator is told where it does not."""

from __future__ import annotations

from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.agent.node_identity import NodeIdentity
from rumq.cluster.control.errors import ControlRefused
from rumq.cluster.control.records import ClusterRecord
from rumq.cluster.links.greeting import FEATURE_LEVEL


def check_cluster(settings: AgentSettings, cluster: ClusterRecord) -> None:
    """Whether a node may be in a cluster. raises: ControlRefused"""
    for key, found, wanted in (
        ("shards", cluster.shards, settings.shards),
        ("replicas", cluster.replicas, settings.replicas),
    ):
        if found != wanted:
            raise ControlRefused(
                f"cluster.{key} = {wanted}: the cluster {settings.cluster!r} was created with {found}, which is fixed: "
                f"set cluster.{key} to {found}, or choose another cluster.name for a new cluster"
            )
    if cluster.feature_level > FEATURE_LEVEL:
        raise ControlRefused(
            f"the cluster {settings.cluster!r} has feature level {cluster.feature_level}, and this version of rumq, "
            f"{settings.version}, knows {FEATURE_LEVEL}: install the version that the other nodes have"
        )


def disk_restored(identity: NodeIdentity) -> str:
    return (
        f"the data directory of {identity.id} was restored from an old copy: what it acknowledged since is missing. "
        "Its copies have no vote until the shards' leaders have repaired them, which needs a majority of the others; "
        "if that is gone, see rumqd cluster force-leader --help"
    )


def cluster_gone(identity: NodeIdentity) -> str:
    return (
        f"the control plane has no record of the cluster {identity.cluster!r} with id {identity.cluster_id}, to which "
        "this data directory belongs: check cluster.etcd and cluster.etcd_prefix, or restore the snapshot of etcd; "
        "without one, remove _cluster from one complete data directory, and start the other nodes with empty ones"
    )
