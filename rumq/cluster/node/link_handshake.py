"""The TLS handshake of a link between nodes, which the first reads and writes make, and who the other end is then."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from rumq.cluster.links.node_names import NodeNames, uris_of


@dataclass(slots=True)
class LinkTls:
    """Contexts of mutual TLS: of links that others dial, and of those that this process dials. names: what certificates
    must say. Links that are made later use the contexts that are there then: certificates are renewed so."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    names: NodeNames


class Impostor(OSError):
    """What was dialled has another node's certificate, or none of a node."""


class LinkHandshake:
    """tls: None for plain bytes; is_open: it is over, or none is needed; uris: of the other's certificate then

    is_impostor: what was dialled is another node, or none; waits_to_read: it needs bytes of the other end"""

    def __init__(self, tls: LinkTls | None, node: str) -> None:
        """node: id of whom this process dials, empty for anybody"""
        self.tls, self._node = tls, node
        self.uris: tuple[str, ...] = ()
        self.is_open = tls is None
        self.is_impostor = self.waits_to_read = False

    def wrap(self, sock: socket.socket, *, is_server: bool) -> socket.socket:
        """The socket over TLS, or as it is."""
        if self.tls is None:
            return sock
        context = self.tls.server if is_server else self.tls.client
        return context.wrap_socket(sock, is_server, do_handshake_on_connect=False)

    def go_on(self, sock: socket.socket) -> None:
        """Make a step of it. sock: as of `wrap`. raises: OSError, also for want of bytes or room, until it is over"""
        if self.is_open:
            return
        assert self.tls is not None and isinstance(sock, ssl.SSLSocket)
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            self.waits_to_read = True
            raise
        self.waits_to_read = False
        self.uris = uris_of(sock.getpeercert())
        if self._node and (problem := self.tls.names.maybe_problem(self.uris, self._node)):
            self.is_impostor = True
            raise Impostor(problem)
        self.is_open = True
