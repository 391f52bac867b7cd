"""Where a shard runs that a node of a cluster leads."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from commitlog.replica.replica_state import StoredReplicaState
from rumq.cluster.node.beats import OpeningBeats
from rumq.cluster.node.copy_inquiries import CopyInquiries
from rumq.cluster.node.standby_process import TakenOffice


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """node: id; office: how it was taken; beats: until the leader's own links have begun; listener: for other nodes
    inquiries: answers what this node's copy has"""

    node: str
    office: TakenOffice
    beats: OpeningBeats
    listener: socket.socket
    state: StoredReplicaState
    inquiries: CopyInquiries
