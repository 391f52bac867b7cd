"""Connections of other nodes to the leader of a shard: relayed clients, links of the bus, and what others take."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping

from rumq.cli.broker.client_connections import HandedOver
from rumq.cluster.connections.node_tls import NodeTls
from rumq.net.connection_handover import CLIENT
from rumq.shards.assembly import Shard
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
) -> ClusterListener:
    """Accept from the shard's listening socket. clients: of `relayed_clients`; others: takers by kind of greeting

    tls: None for plain bytes between nodes"""
    takers = {"client": clients, "bus": links.take, **others}
    return ClusterListener(sock, shard.pump, expected, takers, shard.timers, shard.events, tls)


def relayed_clients(take: HandedOver, listeners: Collection[int]) -> Taker:
    """The taker of clients that the edge of another node relays. take: as of `take_handed_over`

    listeners: their numbers, which are their places in the settings and the same on all nodes"""

    def take_relayed(caller: Caller) -> None:
        greeting = caller.greeting
        if greeting.listener not in listeners:
            caller.refuse(f"there is no listener number {greeting.listener} on this node")
            return
        caller.answer_taken()
        take(
            greeting.handover or CLIENT,
            caller.sock,
            greeting.peer,
            caller.raw + caller.rest,
            greeting.listener,
        )

    return take_relayed
