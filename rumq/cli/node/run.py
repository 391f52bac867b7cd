"""`rumqd run` as a node of a cluster: a process for each shard, which follows or leads, an agent and an edge.

The supervisor binds every address, so that none is lost when a process dies. docs/cluster.md."""

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
from rumq.cli.broker.latest_settings import LatestSettings
from rumq.cli.broker.shard_store import Place
from rumq.cli.node.addresses import bind_cluster
from rumq.cli.node.agent_process import run_agent
from rumq.cli.node.edge import EdgePlace, serve_edge
from rumq.cli.node.node import Node
from rumq.cli.node.node_certificates import check_node_certificates, tell_what_is_open
from rumq.cli.node.secret_files import check_secret_files
from rumq.cli.node.shard_process import run_shard
from rumq.cli.wiring.streams import GENERATION, reloaded
from rumq.cluster.agent.node_identity import node_identity, read_identity
from rumq.config import Settings
from rumq.errors import RumqError
from rumq.events import RING
from rumq.shards.processes.event_sender import EventSender
from rumq.shards.processes.fd_passing import make_shard_sockets
from rumq.shards.processes.supervisor import Supervisor
from rumq.shards.processes.watchdog import watchdog_seconds
from rumq.shards.stats.event_log import tell

FAILED = 1
# What a process imports only later on: it is imported before the fork, so that they share it, and nobody waits for it.
IMPORTED_LATER = (
    "rumq.cli.node.leader",
    "rumq.shards.delivery.copy_reads",
)


def run_node(settings: Settings, read: Callable[[], Settings], place: Place) -> int:
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
    supervisor = Supervisor(
        cluster.shards + 2, child, event=tell, all_ready=partial(tell, "broker.ready", host=host, port=port),
        reread=latest.reread, watchdog_seconds=watchdog_seconds(os.getpid()),
        flush=EventSender(RING, place.data, "supervisor").flush if settings.gateway.port else lambda: False,
    )  # fmt: skip
    status = supervisor.run(place.started)
    tell("broker.stopped", seconds=round(time.monotonic() - place.started, 3), exit_status=status)
    return status


def has_log(place: Place) -> bool:
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
