"""Connections of other nodes to the leader of a shard: relayed clients, links of the bus, and what others take."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.greeting import GATEWAY
from rumq.cluster.links.greeting_queue import GREETINGS_MAX
from rumq.net.connection_handover import CLIENT
from rumq.net.sockets.fd_limit import raise_limit, room_for_connections
from rumq.process.listeners.client_connections import HandedOver
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.shards.assembly.shard import Shard
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected, Taker


def open_cluster_listener(
    shard: Shard,
    sock: socket.socket,
    expected: Expected,
    clients: Taker,
    links: ClusterLinks,
    others: Mapping[str, Taker],
    tls: NodeTls | None = None,
    greetings_max: int = GREETINGS_MAX,
) -> ClusterListener:
    """Accept from the shard's listening socket. clients: of `relayed_clients`; others: takers by kind of greeting

    tls: None for plain bytes between nodes; greetings_max: connections at once that have not greeted"""
    takers = {"client": clients, "bus": links.take, **others}
    return ClusterListener(sock, shard.pump, expected, takers, shard.timers, shard.events, tls, greetings_max)


def relayed_clients(take: HandedOver, policies: Mapping[int, ListenerPolicy]) -> Taker:
    """The taker of clients that the edge of another node relays. take: as of `take_handed_over`

    policies: by number of the listener, which is its place in the settings and the same on all nodes"""

    def take_relayed(caller: Caller) -> None:
        greeting = caller.greeting
        number = maybe_listener(greeting.listener, policies)
        if number is None:
            caller.refuse(missing_listener(greeting.listener))
            return
        caller.answer_taken()
        take(greeting.handover or CLIENT, caller.sock, greeting.peer, caller.raw + caller.rest, number)

    return take_relayed


def maybe_listener(number: int, policies: Mapping[int, ListenerPolicy]) -> int | None:
    """The number here of a listener there. A client of another node's listener never becomes one of the gateway's."""
    if number == GATEWAY:
        return next((here for here, policy in policies.items() if policy.is_gateway), None)
    return number if number in policies and not policies[number].is_gateway else None


def missing_listener(number: int) -> str:
    if number == GATEWAY:
        return "this node has no gateway: set gateway.port on all nodes of the cluster, or on none"
    return f"there is no listener number {number} on this node: all nodes of a cluster have the same"


def greetings_max() -> int:
    """Connections of strangers that leave most of the free descriptors to the log, clients and other nodes."""
    return min(GREETINGS_MAX, room_for_connections(raise_limit(), 0) // 4)
