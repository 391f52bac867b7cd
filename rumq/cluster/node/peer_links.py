"""Links that a shard's process dials while it does not lead: to replicas that it asks, when it would take office."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from rumq.cluster.control.records import NodeRecord, View
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.cluster.links.impostor_log import ImpostorLog
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.replication.messages import ReplicaMessage

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class PeerCallbacks(NamedTuple):
    """answered: takes a peer, its message and raw bytes, and monotonic seconds
    unreachable: takes a peer that cannot be reached, or whose link has ended, and monotonic seconds"""

    answered: Callable[[str, ReplicaMessage, memoryview, float], None]
    unreachable: Callable[[str, float], None]


class PeerLinks:
    """Of one shard."""

    def __init__(
        self, node: str, shard: int, selector: selectors.BaseSelector, tls: LinkTls | None, answers: PeerCallbacks,
        tell: Callable[..., None],
    ) -> None:  # fmt: skip
        """node: id of this one; tls: None for plain bytes; tell: takes events"""
        self._node, self._shard, self._selector, self._tls, self._answers = node, shard, selector, tls, answers
        self._links: dict[str, FrameLink] = {}
        self._impostors = ImpostorLog(tell)
        self._addresses: dict[str, NodeRecord] = {}
        self._view: View | None = None

    def seen(self, view: View) -> None:
        """Addresses of live nodes; others keep the last one that is known."""
        self._view = view
        self._addresses.update({each.id: each for each in view.nodes})

    def send(self, peer: str, message: ReplicaMessage, epoch: int) -> None:
        """Ask a peer, over a link that is made for it if there is none. epoch: of the shard's record"""
        link = self._links.get(peer)
        if link is None:
            link = self._dial(peer, epoch)
            if link is None:
                self._answers.unreachable(peer, time.monotonic())
                return
        link.send(message)
        self._flush(peer, link)

    def _dial(self, peer: str, epoch: int) -> FrameLink | None:
        node = self._addresses.get(peer)
        if node is None or self._view is None:
            return None
        try:
            # Addresses of a cluster are on its own network: a name that is looked up is looked up in no time.
            family, kind, proto, _, address = socket.getaddrinfo(
                node.host, node.port + 1 + self._shard, type=socket.SOCK_STREAM
            )[0]
            sock = socket.socket(family, kind, proto)
        except OSError:
            return None
        sock.setblocking(False)
        if sock.connect_ex(address) not in (0, 115):  # EINPROGRESS
            sock.close()
            return None
        link = FrameLink(sock, self._tls, is_connecting=True, node=peer)
        link.send(Greeting("replica", self._view.cluster, self._node, self._shard, epoch))
        self._links[peer] = link

        def ready() -> None:
            if not link.is_connecting:
                for message, raw in link.read():
                    if isinstance(message, GreetingRefused):
                        link.close()
                        break
                    self._answers.answered(peer, message, raw, time.monotonic())
            self._flush(peer, link)

        link.is_watched_for_room = True
        self._selector.register(link.fd, READ | WRITE, ready)
        return link

    def _flush(self, peer: str, link: FrameLink) -> None:
        link.flush()
        if not link.closed:
            self._watch(link)
        elif self._links.get(peer) is link:
            del self._links[peer]
            if link.handshake.is_impostor:
                self._impostors.met(peer, link.why, time.monotonic())
            self._selector.unregister(link.fd)
            self._answers.unreachable(peer, time.monotonic())

    def _watch(self, link: FrameLink) -> None:
        """Wait for the socket to take more only while there is more."""
        if link.has_output != link.is_watched_for_room:
            link.is_watched_for_room = link.has_output
            wanted = READ | WRITE if link.has_output else READ
            self._selector.modify(link.fd, wanted, self._selector.get_key(link.fd).data)

    def give(self) -> list[FrameLink]:
        """Links that are made, for whoever goes on with them; the others are closed."""
        for link in self._links.values():
            if link.is_connecting:
                link.close()
        return [link for link in self._links.values() if not link.is_connecting]

    def close(self) -> None:
        for link in self._links.values():
            link.close()
