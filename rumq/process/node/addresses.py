"""Addresses of a node: sockets for other nodes, and what the node tells of itself."""

from __future__ import annotations

import socket
from typing import NamedTuple

from rumq.errors import RumqError
from rumq.process.listeners.cluster_address import EVERYWHERE, advertised
from rumq.process.listeners.listening_sockets import ListeningSocket
from rumq.settings.table import Settings

BACKLOG = 1024


class ClusterAddresses(NamedTuple):
    """sockets: one for each shard; host, port: as other nodes reach them, shard i at port + 1 + i; mqtt: as clients"""

    sockets: list[socket.socket]
    host: str
    port: int
    mqtt: list[str]


def bind_cluster(settings: Settings, doorways: list[ListeningSocket]) -> ClusterAddresses:
    """raises: RumqError"""
    cluster = settings.cluster
    sockets = []
    for shard in range(cluster.shards):
        port = cluster.port + 1 + shard
        try:
            sockets.append(listen(cluster.host, port))
        except OSError as fault:
            for each in sockets:
                each.close()
            raise RumqError(
                f"cannot listen on {cluster.host}:{port} for other nodes: {fault.strerror or fault}; a node with "
                f"{cluster.shards} shards takes the ports {cluster.port + 1} to {cluster.port + cluster.shards}: give "
                "another cluster.port or cluster.host, or stop the process that uses it"
            ) from fault
    host, port = advertised(settings)
    return ClusterAddresses(sockets, host, port, [reachable_mqtt(settings, doorways, host)])


def listen(host: str, port: int) -> socket.socket:
    """raises: OSError"""
    bound = "" if host in EVERYWHERE else host
    family = socket.getaddrinfo(bound or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    sock = socket.create_server((bound, port), family=family, backlog=BACKLOG)
    sock.setblocking(False)
    return sock


def reachable_mqtt(settings: Settings, doorways: list[ListeningSocket], host: str) -> str:
    """host:port by which clients reach the first listener."""
    if settings.cluster.advertise_mqtt:
        return settings.cluster.advertise_mqtt
    bound, port = doorways[0].address
    return f"{host if bound in EVERYWHERE else bound}:{port}"
