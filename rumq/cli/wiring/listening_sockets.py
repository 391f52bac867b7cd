"""Listening sockets of all listeners, opened once and shared by all shards."""

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
    """listener: index of its listener in the settings"""

    listener: int
    sock: socket.socket

    @property
    def address(self) -> tuple[str, int]:
        """(host, port), or (path, 0) of a Unix socket."""
        name = self.sock.getsockname()
        return (name, 0) if isinstance(name, str) else (name[0], name[1])


def open_listening_sockets(settings: Settings) -> list[ListeningSocket]:
    """raises: RumqError"""
    opened: list[ListeningSocket] = []
    for number, listener in enumerate(settings.listeners):
        sockets = [unix_socket(listener)] if listener.path else address_sockets(listener)
        for sock in sockets:
            opened.append(ListeningSocket(number, sock))
            announce(settings, listener, opened[-1])
    return opened


def address_sockets(listener: Listener) -> list[socket.socket]:
    try:
        return open_sockets(listener.host, listener.port, listener.backlog)
    except OSError as fault:
        raise RumqError(
            f"cannot listen on {listener.host}:{listener.port}: {fault.strerror or fault}; "
            "give another --port or --host, or stop the process that uses it"
        ) from fault


def unix_socket(listener: Listener) -> socket.socket:
    try:
        return open_unix_socket(listener.path, int(listener.path_mode, 8), listener.backlog)
    except OSError as fault:
        raise RumqError(
            f"cannot listen on {listener.path}: {fault.strerror or fault}; give another listener.path, "
            "or stop the process that uses it"
        ) from fault


def announce(settings: Settings, listener: Listener, listening: ListeningSocket) -> None:
    host, port = listening.address
    protocol = listener.protocol + (" over TLS" if listener.tls_certificate else "")
    tell("listener.bound", host=host, port=port, protocol=protocol)
    if not listener.path:
        warn_if_exposed(settings, listener, host, port, "publish and subscribe")


def warn_if_exposed(settings: Settings, listener: Listener, host: str, port: int, what: str) -> None:
    """Warn if an address can be reached from other machines and everybody, or nobody, is admitted. what: they may do"""
    if is_loopback(host):
        return
    if anonymous_allowed(settings, listener):
        tell(
            "listener.open", host=host, port=port,
            why=f"anybody who can reach this address may {what}: put a firewall in front of it, "
            "or configure users (rumqd passwd)",
        )  # fmt: skip
    elif not has_users(settings, listener):
        tell(
            "listener.closed", host=host, port=port,
            why="every client is refused: this address can be reached from other machines, and no users are set up. "
            'Set auth.password_file, or auth.anonymous = "yes" to admit everybody',
        )  # fmt: skip


def has_users(settings: Settings, listener: Listener) -> bool:
    auth = settings.auth
    certificates = listener.tls_client_certificate != "no" and listener.certificate_as_user != "no"
    return bool(
        listener.password_file or auth.password_file or auth.token_keys_file or auth.http_url or certificates
    )
