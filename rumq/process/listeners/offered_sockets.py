"""Sockets of new listeners, from the supervisor that has bound them to the shards, ahead of the SIGHUP.

Before each SIGHUP every shard is sent all sockets that were bound since the start. It takes those that it lacks, and
closes the others."""

from __future__ import annotations

import os
import socket
from collections import defaultdict

from rumq.errors import ConfigError, Fault
from rumq.net.sockets.fd_passing import FdPassing, ShardSocket
from rumq.process.listeners.listener_changes import identity_of, paired, removed
from rumq.process.listeners.listener_policies import key_of
from rumq.process.listeners.listening_sockets import Doorways, ListenerChange
from rumq.settings.table import Settings

LISTENER = "listener"
OFFER_SECONDS_MAX = 5.0  # a shard that hears nothing for so long learns of it with the next reload


class SocketOffers:
    """Of the supervisor. begun: number of the first listener that shards may lack"""

    def __init__(self, doors: list[ShardSocket], begun: int) -> None:
        self._doors = FdPassing(doors, -1, lambda seconds, call: None)
        self._count, self._begun = len(doors), begun
        self._serial = 0

    def send(self, settings: Settings, doorways: Doorways) -> None:
        """settings: those in force from here on"""
        self._serial += 1
        identities = dict(zip(doorways.numbers, map(identity_of, settings.listeners), strict=True))
        for number, sock in doorways.sockets:
            if number >= self._begun:
                for shard in range(self._count):
                    fd = os.dup(sock.fileno())
                    serial = b"%d" % self._serial
                    self._doors.give(shard, LISTENER, fd, identities[number], serial, number)
        self._doors.flush_within(OFFER_SECONDS_MAX)


class OfferedSockets:
    """Of a shard: what it was offered since its last reload."""

    def __init__(self, numbers: list[int], next_number: int) -> None:
        """numbers: of the listeners in force; next_number: of the first that is not known here"""
        self._numbers, self._next_number = list(numbers), next_number
        self._serial = 0
        self._sockets: defaultdict[int, list[socket.socket]] = defaultdict(list)
        self._identities: dict[int, str] = {}

    def __contains__(self, number: object) -> bool:
        """Whether this listener may come with the next reload."""
        return isinstance(number, int) and number >= self._next_number

    def take(self, sock: socket.socket, identity: str, data: bytes, number: int) -> None:
        """As given. data: of one serial number are those of one offer"""
        serial = int(data)
        if serial > self._serial:
            self._serial = serial
            self._close_all()
        if serial < self._serial or number < self._next_number:
            sock.close()  # of a listener that was there when this process was forked, or is no more
            return
        self._identities[number] = identity
        self._sockets[number].append(sock)

    def prepare(self, old: Settings, new: Settings) -> ListenerChange:
        """raises: ConfigError if the settings are not those of which the sockets are"""
        pairs = paired(old, new)
        numbers: list[int] = []
        added: dict[int, list[socket.socket]] = {}
        for before, after in pairs:
            if before is not None:
                numbers.append(self._numbers[before])
                continue
            assert after is not None
            wanted = identity_of(new.listeners[after])
            fitting = [n for n in sorted(self._sockets) if n not in added and self._identities[n] == wanted]
            if not fitting:
                why = (
                    f"this shard has no socket for {wanted}: the settings were written while they were read; "
                    "send SIGHUP again"
                )
                raise ConfigError(Fault("", key_of(after), "", why))
            numbers.append(fitting[0])
            added[fitting[0]] = self._sockets[fitting[0]]
        return ListenerChange(pairs, numbers, added, [self._numbers[place] for place in removed(old, pairs)])

    def undo(self, change: ListenerChange, old: Settings) -> None:
        """The change is not made; the sockets are offered again before the next."""
        self._close_all()

    def commit(self, change: ListenerChange, new: Settings) -> None:
        for number in change.added:
            del self._sockets[number]
        self._close_all()
        self._numbers = list(change.numbers)
        self._next_number = max(self._next_number, *(number + 1 for number in change.numbers))

    def _close_all(self) -> None:
        for sockets in self._sockets.values():
            for sock in sockets:
                sock.close()
        self._sockets.clear()
        self._identities.clear()
