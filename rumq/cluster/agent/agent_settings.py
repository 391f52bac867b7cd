"""What a node's agent is told when it starts, and the control plane that this names."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rumq.cluster.control.control_plane import ControlPlane
from rumq.cluster.control.errors import ControlRefused
from rumq.cluster.control.etcd import Etcd, TlsFiles
from rumq.cluster.control.etcd_control import EtcdControl
from rumq.cluster.control.local_control import LocalControl


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """endpoints: of etcd; none: a cluster of one node, in a file. host, port: as other nodes reach this one

    mqtt: addresses for clients, "host:port"; has_log: the data directory has records; replace_seconds: a node that is
    gone for so long is replaced, 0: never; partitions: as in `NodeRecord`; incarnation: of this run of the node"""

    data: str
    cluster: str
    node: str
    shards: int
    replicas: int
    host: str
    port: int
    mqtt: list[str]
    version: str
    endpoints: list[str] = []
    prefix: str = "/rumq"
    user: str = ""
    password_file: str = ""
    tls: TlsFiles = TlsFiles()
    zone: str = ""
    has_log: bool = False
    replace_seconds: float = 0.0
    partitions: dict[str, int] = {}
    incarnation: str = msgspec.field(default_factory=lambda: os.urandom(4).hex())


def control_plane(settings: AgentSettings) -> ControlPlane:
    """raises: ControlRefused"""
    if not settings.endpoints:
        return LocalControl(Path(settings.data))
    password = ""
    if settings.password_file:
        try:
            password = Path(settings.password_file).read_text().splitlines()[0]
        except (OSError, IndexError) as fault:
            raise ControlRefused(f"cluster.etcd_password_file: {settings.password_file}: {fault or 'empty'}") from fault
    etcd = Etcd(settings.endpoints, settings.tls, settings.user, password)
    return EtcdControl(etcd, settings.prefix, settings.cluster)
