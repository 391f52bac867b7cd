"""`rumqd run` as a node of a cluster: a process for each shard, which follows or leads, an agent and an edge.

The supervisor binds every address, so that none is lost when a process dies. docs/guides/cluster.md."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from commitlog import StreamSpec
from rumq.cluster.agent.node_identity import node_identity, read_identity
from rumq.errors import RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.net.sockets.fd_passing import make_shard_sockets
from rumq.process.certificates.node_certificates import check_node_certificates, tell_what_is_open
from rumq.process.certificates.secret_files import check_secret_files
from rumq.process.node.addresses import bind_cluster
from rumq.process.node.agent_process import run_agent
from rumq.process.node.edge import EdgePlace, serve_edge
from rumq.process.node.node import Node
from rumq.process.node.shard_process import run_shard
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.process.wiring.latest_settings import LatestSettings
from rumq.process.wiring.page_address import page_address
from rumq.process.wiring.streams import GENERATION, reloaded
from rumq.settings.table import Settings
from rumq.supervision.supervisor import Supervisor
from rumq.supervision.watchdog import watchdog_seconds

FAILED = 1
# What a process imports only later on: it is imported before the fork, so that they share it, and nobody waits for it.
IMPORTED_LATER = (
    "rumq.process.shard.leader",
    "rumq.shards.delivery.copy_reads",
)


def run_node(settings: Settings, read: Callable[[], Settings], place: ShardEnvironment) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. place: `count` is that of the cluster's shards

    raises: RumqError"""
    cluster, data = settings.cluster, Path(place.data)
    check_node_certificates(settings)  # what is wrong with the files is said before anything is bound
    check_secret_files(settings, says_exposed=True)
    tell_what_is_open(settings)
    addresses = bind_cluster(settings, place.doorways.sockets)
    is_new = read_identity(data) is None
    identity = node_identity(data, cluster.name, cluster.node, has_log=has_log(place))
    latest = LatestSettings(settings, read, place.doorways, None)
    node = Node(settings, read, place, identity, addresses, make_shard_sockets(cluster.shards + 1), is_new)

    def child(index: int, ready: int) -> int:
        now = latest.settings
        specs = list(map(reloaded, place.streams, now.stream))
        here = node._replace(settings=now, place=replace(place, streams=specs, ready=ready, index=index))
        try:
            if index < cluster.shards:
                return run_shard(here)
            if index == cluster.shards:
                edge = EdgePlace(place.data, node.doors, place.doorways.sockets, ready, place.sources)
                return serve_edge(now, edge, read)
            return run_agent(here)
        except RumqError as fault:
            for line in str(fault).splitlines():
                print(f"rumqd: {line}", file=sys.stderr)
            return FAILED

    for name in IMPORTED_LATER:
        import_module(name)
    host, port = place.doorways.sockets[0].address
    ready = partial(tell, "broker.ready", host=host, port=port, page=page_address(settings))
    supervisor = Supervisor(
        cluster.shards + 2, child, event=tell, all_ready=ready,
        reread=latest.reread, watchdog_seconds=watchdog_seconds(os.getpid()),
        flush=EventSender(RING, place.data, "supervisor").flush if settings.gateway.port else lambda: False,
    )  # fmt: skip
    status = supervisor.run(place.started)
    tell("broker.stopped", seconds=round(time.monotonic() - place.started, 3), exit_status=status)
    return status


def has_log(place: ShardEnvironment) -> bool:
    """Whether a directory that was a broker alone has records, which the cluster is to keep."""
    return any(holds_records(f"{place.data}/{spec.name}", spec) for spec in place.streams)


def holds_records(path: str, spec: StreamSpec) -> bool:
    for number in range(spec.partitions):
        try:
            names = os.listdir(f"{path}/g{GENERATION}/p{number}")
        except OSError:
            continue
        if any(name.endswith(".seg") for name in names):
            return True
    return False
