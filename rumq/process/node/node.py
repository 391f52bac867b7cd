"""What the processes of a node share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rumq.cluster.agent.node_identity import NodeIdentity
from rumq.net.sockets.fd_passing import ShardSocket
from rumq.process.node.addresses import ClusterAddresses
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.settings.table import Settings


class Node(NamedTuple):
    """place: of the process that this is given to; doors: of each shard, and of the edge behind them

    is_new: the data directory was not a node before"""

    settings: Settings
    read: Callable[[], Settings]
    place: ShardEnvironment
    identity: NodeIdentity
    addresses: ClusterAddresses
    doors: list[ShardSocket]
    is_new: bool
