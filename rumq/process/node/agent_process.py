"""The agent of a node as a process, from the settings."""

from __future__ import annotations

import os
import threading
import time
from functools import partial

import trio

from rumq.cluster.admin.node_admin import NodeAdmin
from rumq.cluster.agent.agent import Agent
from rumq.cluster.agent.agent_process import serve_agent
from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import SOCKET_NAME, Seen
from rumq.cluster.control.etcd import TlsFiles
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.events.event_lines import RING
from rumq.events.event_sender import EventSender
from rumq.process.certificates.node_certificates import link_tls, watched_link_tls
from rumq.process.node.node import Node
from rumq.supervision.supervisor import IS_READY
from rumq.version import VERSION

LOOK_SECONDS = 0.05
EVENTS_SECONDS = 0.5  # until the gateway has what was told


def run_agent(node: Node) -> int:
    """Serve until a signal; returns the exit status. It is ready once it has met its cluster."""
    cluster, addresses = node.settings.cluster, node.addresses
    certificates = link_tls(node.settings)
    tls = AgentTls(certificates.client, certificates.names) if certificates is not None else None
    threading.Thread(target=announce, args=(node,), name="rumq-met", daemon=True).start()
    return serve_agent(
        AgentSettings(
            data=node.place.data, cluster=cluster.name, node=cluster.node, shards=cluster.shards,
            replicas=cluster.replicas, host=addresses.host, port=addresses.port, mqtt=addresses.mqtt, version=VERSION,
            endpoints=list(cluster.etcd), prefix=cluster.etcd_prefix, user=cluster.etcd_user,
            password_file=cluster.etcd_password_file,
            tls=TlsFiles(cluster.etcd_authority, cluster.etcd_certificate, cluster.etcd_key), zone=cluster.zone,
            has_log=node.identity.has_log, replace_seconds=cluster.replace_seconds,
            partitions={spec.name: spec.partitions for spec in node.place.streams},
        ),
        beside=partial(run_beside, node, tls), tls=tls,
    )  # fmt: skip


async def run_beside(node: Node, tls: AgentTls | None, agent: Agent) -> None:
    """The node's admin socket, and the agent's events for the node's gateway, until cancelled."""
    settings = node.settings
    admin = NodeAdmin(node.place.data, settings.cluster.name, settings.cluster.shards, agent, tls)
    agent.requests.ask_terms = admin.terms

    def use(fresh: LinkTls) -> None:
        assert tls is not None
        tls.context = fresh.client

    certificates = watched_link_tls(settings, use)
    async with trio.open_nursery() as nursery:
        if certificates is not None:
            nursery.start_soon(certificates.run)
        nursery.start_soon(admin.run)
        if settings.gateway.port:
            nursery.start_soon(send_events, EventSender(RING, node.place.data, "agent"))


async def send_events(sender: EventSender) -> None:
    while True:
        sender.flush()
        await trio.sleep(EVENTS_SECONDS)


def announce(node: Node) -> None:
    """Report that the agent is ready when it shows its first view, as it does to every process of this node."""
    while True:
        try:
            link = AgentSocket(f"{node.place.data}/{SOCKET_NAME}", "operator")
        except OSError:
            time.sleep(LOOK_SECONDS)
            continue
        try:
            while True:
                if any(isinstance(message, Seen) for message in link.receive()):
                    os.write(node.place.ready, IS_READY)
                    return
                time.sleep(LOOK_SECONDS)
        except OSError:
            link.close()
