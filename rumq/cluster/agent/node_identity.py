"""Which node of which cluster a data directory belongs to: `<data>/_cluster/node.json`.

The id of the disk is drawn once. A blank or replaced disk gets another one, and has none of the old one's votes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rumq.cluster.control.durable_file import replace_durably
from rumq.cluster.control.errors import ControlRefused
from rumq.cluster.control.records import Versioned


class NodeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """cluster_id: empty until the node has met its cluster; has_log: the disk had records when it first joined, and
    the cluster has not begun with them yet; leaves: an operator has drained the node, which a restart does not end"""

    cluster: str
    node: str
    disk: str
    cluster_id: str = ""
    has_log: bool = False
    leaves: bool = False

    @property
    def id(self) -> str:
        return f"{self.node}#{self.disk}"


def identity_path(data: Path) -> Path:
    return data / "_cluster" / "node.json"


def read_identity(data: Path) -> NodeIdentity | None:
    """None if the directory has never been a node. raises: ControlRefused"""
    path = identity_path(data)
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeIdentity)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as fault:
        raise ControlRefused(
            f"{path}: {fault}: restore the file from a backup; without one, start with an empty data directory, "
            "which joins as a new node and gets its copies from the others"
        ) from fault


def node_identity(data: Path, cluster: str, node: str, *, has_log: bool) -> NodeIdentity:
    """The identity, made at the first start.

    raises: ControlRefused, for a directory of another node or cluster; OSError"""
    found = read_identity(data)
    if found is None:
        found = NodeIdentity(cluster=cluster, node=node, disk=os.urandom(4).hex(), has_log=has_log)
        keep_identity(data, found)
    for key, value, wanted in (("name", found.cluster, cluster), ("node", found.node, node)):
        if value != wanted:
            raise ControlRefused(
                f"{identity_path(data)}: this data directory is that of node {found.node!r} of cluster "
                f"{found.cluster!r}, and cluster.{key} is {wanted!r}: set cluster.{key} to {value!r}, or name "
                "another data directory; an empty one joins as a new node"
            )
    return found


def keep_identity(data: Path, identity: NodeIdentity) -> None:
    replace_durably(identity_path(data), msgspec.json.encode(identity) + b"\n")


def met_cluster(data: Path, identity: NodeIdentity, cluster_id: str) -> NodeIdentity:
    """Note at the first meeting which cluster it is; later it must be that one. raises: ControlRefused, OSError"""
    if not identity.cluster_id:
        identity = msgspec.structs.replace(identity, cluster_id=cluster_id)
        keep_identity(data, identity)
    elif identity.cluster_id != cluster_id:
        raise ControlRefused(
            f"{identity_path(data)}: this data directory belongs to the cluster {identity.cluster!r} with id "
            f"{identity.cluster_id}, and etcd has a cluster of that name with id {cluster_id}: set cluster.etcd and "
            "cluster.etcd_prefix to those of the first one, or start with an empty data directory to join the other"
        )
    return identity


def drained(data: Path, identity: NodeIdentity, *, leaves: bool) -> NodeIdentity:
    """Note that an operator drains the node, or has taken that back. raises: OSError"""
    if identity.leaves != leaves:
        identity = msgspec.structs.replace(identity, leaves=leaves)
        keep_identity(data, identity)
    return identity


def absorbed(data: Path, identity: NodeIdentity, shards: list[Versioned], count: int) -> NodeIdentity:
    """A log that the node brought is the cluster's log from the moment on that all shards have records. shards: found

    raises: OSError; ControlRefused, if the cluster began with another log or none: this one would be mixed into it"""
    if not identity.has_log or sum(each.revision > 0 for each in shards) < count:
        return identity
    if not any(identity.id in each.record.members for each in shards):
        raise ControlRefused(
            f"{data}: this data directory has records from before it joined, and the cluster {identity.cluster!r} has "
            "a log already: start with an empty data directory, which gets its copies from the others"
        )
    identity = msgspec.structs.replace(identity, has_log=False)
    keep_identity(data, identity)
    return identity
