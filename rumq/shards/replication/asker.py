"""Other replicas that ask this leader: one that does not hear it, and one that has won a claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumq.cluster.replication.messages import Outdated, Poll, Polled, Promise, ReplicaMessage
from rumq.net.connection import Connection
from rumq.shards.links.cluster_listener import Caller
from rumq.shards.replication.follower_link import ReplicaLink, ReplicaTransport

OUTBOX_BYTES_MAX = 1 << 16
QUESTION_BYTES_MAX = 1 << 16  # of a frame: polls and promises are small
NODE_LINKS_MAX = 16  # from one node; its oldest makes room


class Askers:
    """Connections that others have dialled to the leader's process, with a greeting of kind "replica"."""

    def __init__(
        self, term: Callable[[], tuple[int, str]], records: Callable[[], int], depose: Callable[[str], None]
    ) -> None:
        """term: its epoch and claim; records: sum of the next lsns of the log; depose: ends the term, with a reason"""
        self._term, self._records, self._depose = term, records, depose
        self._links: dict[ReplicaLink, None] = {}  # the oldest first

    def take(self, pump: Any, caller: Caller) -> None:
        """Serve a connection that has greeted."""
        peer = caller.greeting.node
        connection = Connection(pump, caller.sock, f"replica {peer}", OUTBOX_BYTES_MAX)
        connection.link = self.link_over(connection, peer)
        pump.add(connection)
        if caller.rest:
            pump.feed(connection, caller.rest)

    def link_over(self, transport: ReplicaTransport, peer: str) -> ReplicaLink:
        """The handler of such a connection. peer: the node id of its greeting"""
        same = [each for each in self._links if each.peer == peer]
        if len(same) >= NODE_LINKS_MAX:
            same[0].give_up("the same node has newer links")
        link = ReplicaLink(transport, peer, self._received, self._lost, lambda _: None, QUESTION_BYTES_MAX)
        self._links[link] = None
        return link

    def _lost(self, link: ReplicaLink, why: str) -> None:
        self._links.pop(link, None)

    def _received(self, link: ReplicaLink, message: ReplicaMessage) -> bool:
        epoch, term = self._term()
        if isinstance(message, Poll):
            link.say(Polled(True, epoch, epoch, self._records()))
        elif isinstance(message, Promise) and message.epoch > epoch:
            self._depose(f"{link.peer} has won epoch {message.epoch}, this term has {epoch}")
        else:
            link.say(Outdated(epoch, term))
            link.transport.close()
        return True

    def close(self) -> None:
        for link in list(self._links):
            link.give_up("the leader stops")
