"""Other replicas that ask this leader: one that does not hear it, and one that has won a claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumq.cluster.replication.messages import Outdated, Poll, Polled, Promise, ReplicaMessage
from rumq.net.connection import Connection
from rumq.shards.links.cluster_listener import Caller
from rumq.shards.replication.follower_link import ReplicaLink, Transport

OUTBOX_BYTES_MAX = 1 << 16


class Askers:
    """Connections that others have dialled to the leader's process, with a greeting of kind "replica"."""

    def __init__(
        self, epoch: Callable[[], int], records: Callable[[], int], depose: Callable[[str], None]
    ) -> None:
        """epoch: of the term; records: sum of the next lsns of the log; depose: ends the term, with a reason"""
        self._epoch, self._records, self._depose = epoch, records, depose
        self._links: set[ReplicaLink] = set()

    def take(self, pump: Any, caller: Caller) -> None:
        """Serve a connection that has greeted."""
        peer = caller.greeting.node
        connection = Connection(pump, caller.sock, f"replica {peer}", OUTBOX_BYTES_MAX)
        connection.link = self.link_over(connection, peer)
        pump.add(connection)
        if caller.rest:
            pump.feed(connection, caller.rest)

    def link_over(self, transport: Transport, peer: str) -> ReplicaLink:
        """The handler of such a connection. peer: the node id of its greeting"""
        link = ReplicaLink(transport, peer, self._received, self._lost, lambda _: None)
        self._links.add(link)
        return link

    def _lost(self, link: ReplicaLink, why: str) -> None:
        self._links.discard(link)

    def _received(self, link: ReplicaLink, message: ReplicaMessage) -> None:
        epoch = self._epoch()
        if isinstance(message, Poll):
            link.say(Polled(True, epoch, epoch, self._records()))
        elif isinstance(message, Promise) and message.epoch > epoch:
            self._depose(f"{link.peer} has won epoch {message.epoch}, this term has {epoch}")
        else:
            link.say(Outdated(epoch))
            link.transport.close()

    def close(self) -> None:
        for link in list(self._links):
            link.give_up("the leader stops")
