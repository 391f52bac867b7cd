"""Listening sockets of all listeners, opened by the broker's first process and shared by all shards.

A reload binds those of new listeners, all or none, and closes those of listeners that are no more."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rumq.errors import ConfigError, Fault, RumqError
from rumq.events.event_log import tell
from rumq.net.listening.listener import open_sockets
from rumq.net.sockets.unix import open_unix_socket
from rumq.net.sockets.unix import remove as remove_path
from rumq.process.listeners.listener_changes import Pair, paired, removed
from rumq.process.listeners.listener_policies import anonymous_allowed, key_of
from rumq.settings.loopback import is_loopback
from rumq.settings.table import Listener, Settings


class ListeningSocket(NamedTuple):
    """listener: number of its listener"""

    listener: int
    sock: socket.socket

    @property
    def address(self) -> tuple[str, int]:
        """(host, port), or (path, 0) of a Unix socket."""
        name = self.sock.getsockname()
        return (name, 0) if isinstance(name, str) else (name[0], name[1])


class BoundAddress(NamedTuple):
    """As events have it. host: or the path of a Unix socket, whose port is 0"""

    host: str
    port: int
    protocol: str


class ListenerChange(NamedTuple):
    """What a reload does with listeners. numbers: of the listener of each pair

    added: sockets of new listeners, by number; removed: numbers of those that are no more"""

    pairs: list[Pair]
    numbers: list[int]
    added: dict[int, list[socket.socket]]
    removed: list[int]


@dataclass(slots=True)
class Doorways:
    """The sockets of the listeners in force. numbers: of the listeners of the settings, in their order

    next_number: of the next listener; none has that of one that is no more. file: of the settings, for errors"""

    sockets: list[ListeningSocket]
    numbers: list[int]
    next_number: int
    file: str = ""
    _bound: defaultdict[int, list[BoundAddress]] = field(default_factory=lambda: defaultdict(list))

    def prepare(self, old: Settings, new: Settings) -> ListenerChange:
        """Bind what is new. old: the settings in force. raises: ConfigError, with nothing changed"""
        pairs = paired(old, new)
        going = {self.numbers[place]: old.listeners[place] for place in removed(old, pairs)}
        numbers: list[int] = []
        added: dict[int, list[socket.socket]] = {}
        reusable = dict(going)
        number = self.next_number
        try:
            for before, after in pairs:
                if before is not None:
                    numbers.append(self.numbers[before])
                    continue
                assert after is not None
                listener = new.listeners[after]
                try:
                    added[number] = self._sockets_of(listener, reusable)
                except RumqError as fault:
                    key, value = ("path", f'"{listener.path}"') if listener.path else ("port", str(listener.port))
                    raise ConfigError(Fault(self.file, f"{key_of(after)}.{key}", value, str(fault))) from None
                numbers.append(number)
                number += 1
        except RumqError:
            self._undo(added, going)
            raise
        return ListenerChange(pairs, numbers, added, list(going))

    def undo(self, change: ListenerChange, old: Settings) -> None:
        """Close what `prepare` has bound: the change is not made."""
        self._undo(change.added, {n: old.listeners[self.numbers.index(n)] for n in change.removed})

    def _undo(self, added: dict[int, list[socket.socket]], going: dict[int, Listener]) -> None:
        kept = {listener.path for listener in going.values()}
        for sockets in added.values():
            for sock in sockets:
                path = sock.getsockname()
                sock.close()
                if isinstance(path, str) and path not in kept:
                    remove_path(path)

    def commit(self, change: ListenerChange, new: Settings) -> None:
        """new: the settings that `prepare` was given"""
        stay = {str(sock.getsockname()) for sockets in change.added.values() for sock in sockets}
        for each in self.sockets:
            if each.listener in change.removed:
                each.sock.close()
        for host, port, protocol in [bound for number in change.removed for bound in self._bound.pop(number)]:
            if not port and host not in stay:
                remove_path(host)
            tell("listener.removed", host=host, port=port, protocol=protocol)
        self.sockets[:] = [each for each in self.sockets if each.listener not in change.removed]
        for (before, after), number in zip(change.pairs, change.numbers, strict=True):
            if before is None and after is not None:
                self.add(new, new.listeners[after], number, change.added[number])
        self.numbers[:] = change.numbers
        self.next_number += len(change.added)

    def add(self, settings: Settings, listener: Listener, number: int, sockets: Sequence[socket.socket]) -> None:
        for sock in sockets:
            self.sockets.append(ListeningSocket(number, sock))
            self._bound[number].append(announce(settings, listener, self.sockets[-1]))

    def _sockets_of(self, listener: Listener, going: dict[int, Listener]) -> list[socket.socket]:
        """going: listeners that end, without those whose sockets were taken already"""
        for number, other in going.items():
            where = (other.path, other.host, other.port)
            if (listener.path or listener.port) and where == (listener.path, listener.host, listener.port):
                del going[number]
                return self._continued(number, listener)
        if listener.path:
            return [unix_socket(listener)]
        # An address that overlaps that of a listener that ends, as 0.0.0.0 does every one.
        port = listener.port  # 0: any free one; a Unix socket has none either
        rivals = [e.sock for e in self.sockets if port and e.listener in going and e.address[1] == port]
        for sock in rivals:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            return address_sockets(listener, shares=bool(rivals))
        finally:
            for sock in rivals:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)

    def _continued(self, number: int, listener: Listener) -> list[socket.socket]:
        """The sockets of a listener at the same address: no client finds it closed in between."""
        sockets = [each.sock.dup() for each in self.sockets if each.listener == number]
        for sock in sockets:
            sock.setblocking(False)
            sock.listen(listener.backlog)
        return sockets


def open_listening_sockets(settings: Settings, file: str = "") -> Doorways:
    """raises: RumqError"""
    count = len(settings.listeners)
    doorways = Doorways([], list(range(count)), count, file)
    for number, listener in enumerate(settings.listeners):
        doorways.add(
            settings, listener, number,
            [unix_socket(listener)] if listener.path else address_sockets(listener),
        )  # fmt: skip
    return doorways


def address_sockets(listener: Listener, *, shares: bool = False) -> list[socket.socket]:
    try:
        return open_sockets(listener.host, listener.port, listener.backlog, shares=shares)
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


def announce(settings: Settings, listener: Listener, listening: ListeningSocket) -> BoundAddress:
    host, port = listening.address
    bound = BoundAddress(host, port, listener.protocol + (" over TLS" if listener.tls_certificate else ""))
    tell("listener.bound", **bound._asdict())
    if not listener.path:
        warn_if_exposed(settings, listener, host, port, "publish and subscribe")
    return bound


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
    return bool(listener.password_file or auth.password_file or auth.token_keys_file or auth.http_url or certificates)
