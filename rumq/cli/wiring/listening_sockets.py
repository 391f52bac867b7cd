"""The sockets that clients come in through, opened once for all shards. Knows no client."""

from __future__ import annotations

import socket
from typing import NamedTuple

from rumq.cli.wiring.listener_policies import anonymous_allowed, is_loopback
from rumq.config import Settings
from rumq.config.access import Listener
from rumq.errors import RumqError
from rumq.net.listener import open_sockets
from rumq.net.unix import open_unix_socket
from rumq.shards.stats.event_log import tell


class ListeningSocket(NamedTuple):
    """listener: the number of the listener in the settings that the socket is for, from 0"""

    listener: int
    sock: socket.socket

    @property
    def address(self) -> tuple[str, int]:
        """(host, port), or (path, 0) of a Unix socket."""
        name = self.sock.getsockname()
        return (name, 0) if isinstance(name, str) else (name[0], name[1])


def open_listening_sockets(settings: Settings) -> list[ListeningSocket]:
    """raises: RumqError"""
    doorways: list[ListeningSocket] = []
    for number, listener in enumerate(settings.listeners):
        sockets = [unix_socket(listener)] if listener.path else address_sockets(listener)
        for sock in sockets:
            doorway = ListeningSocket(number, sock)
            doorways.append(doorway)
            announce(settings, listener, doorway)
    return doorways


def address_sockets(listener: Listener) -> list[socket.socket]:
    try:
        return open_sockets(listener.host, listener.port, listener.backlog)
    except OSError as fault:
        raise RumqError(
            f"cannot listen on {listener.host}:{listener.port}: {fault.strerror or fault}; "
            "give another --port or --host, or stop what uses it"
        ) from fault


def unix_socket(listener: Listener) -> socket.socket:
    try:
        return open_unix_socket(listener.path, int(listener.path_mode, 8), listener.backlog)
    except OSError as fault:
        raise RumqError(
            f"cannot listen on {listener.path}: {fault.strerror or fault}; give another listener.path, "
            "or stop what uses it"
        ) from fault


def announce(settings: Settings, listener: Listener, doorway: ListeningSocket) -> None:
    host, port = doorway.address
    protocol = listener.protocol + (" over TLS" if listener.tls_certificate else "")
    tell("listener.bound", host=host, port=port, protocol=protocol)
    if not listener.path:
        tell_exposed(settings, listener, host, port, "publish and subscribe")


def tell_exposed(settings: Settings, listener: Listener, host: str, port: int, what: str) -> None:
    """Say so where others than this machine reach an address, and all or none of them come in. what: they may do"""
    if is_loopback(host):
        return
    if anonymous_allowed(settings, listener):
        tell(
            "listener.open", host=host, port=port,
            why=f"anybody who reaches this address may {what}: keep a firewall before it, "
            "or set up users (rumqd passwd)",
        )  # fmt: skip
    elif not has_users(settings, listener):
        tell(
            "listener.closed", host=host, port=port,
            why="no client can come in: this address is not only for this machine, and no users are set up. "
            'Set auth.password_file, or auth.anonymous = "yes" to let everybody in',
        )  # fmt: skip


def has_users(settings: Settings, listener: Listener) -> bool:
    auth = settings.auth
    certificates = listener.tls_client_certificate != "no" and listener.certificate_as_user != "no"
    return bool(
        listener.password_file or auth.password_file or auth.token_keys_file or auth.http_url or certificates
    )
