"""The address by which other machines reach a node of a cluster, from its settings."""

from __future__ import annotations

from rumq.errors import RumqError
from rumq.settings.table import Settings

EVERYWHERE = ("", "*", "0.0.0.0", "::")


def advertised(settings: Settings) -> tuple[str, int]:
    """raises: RumqError"""
    cluster = settings.cluster
    if cluster.advertise:
        host, port = split(cluster.advertise)
        return host, port or cluster.port
    if cluster.host in EVERYWHERE:
        raise RumqError(
            f"cluster.host {cluster.host} is every address of this machine: say in cluster.advertise by which one "
            "other nodes reach it"
        )
    return cluster.host, cluster.port


def split(address: str) -> tuple[str, int]:
    """host and port, 0 where none is given. raises: RumqError"""
    host, _, port = address.rpartition(":")
    if not host or address.endswith("]"):
        return address.strip("[]"), 0
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise RumqError(f"cluster.advertise {address}: expected host or host:port")
    return host.strip("[]"), int(port)
