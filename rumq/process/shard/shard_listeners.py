"""A shard's listeners by their numbers: what each allows, its transports and sockets, and who accepts from them."""

from __future__ import annotations

import socket
from typing import Protocol

from rumq.auth.connection_rate import ConnectionRate
from rumq.events.event_log import tell
from rumq.mqtt.reasons import Reason
from rumq.net.listening.listener import Acceptor, NewConnection, listener_rate
from rumq.net.listening.transports import ConnectionSetup, Transports
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.client_connections import connections_max, welcome
from rumq.process.listeners.limits import limit_pending_logins
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.listening_sockets import Doorways, ListenerChange, ListeningSocket
from rumq.process.listeners.transports import reload_tls, renew_tls, tls_paths, transports_of
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.state.session import Session
from rumq.settings.table import Settings
from rumq.shards.assembly.shard import Shard

SESSIONS_A_TURN = 128
REMOVED = "this listener was removed"


class ListenerSockets(Protocol):
    """Who has the sockets of new listeners: the process that binds, or what it has sent to this one."""

    def prepare(self, old: Settings, new: Settings) -> ListenerChange: ...
    def undo(self, change: ListenerChange, old: Settings) -> None: ...
    def commit(self, change: ListenerChange, new: Settings) -> None: ...


class ShardListeners:
    """policies: in the order of the settings in force, by number"""

    def __init__(self, settings: Settings, doorways: Doorways, source: ListenerSockets) -> None:
        """doorways: as of the start of this process. raises: ConfigError"""
        self._source, self._settings = source, settings
        self.policies: dict[int, ListenerPolicy] = {}
        self._transports: dict[int, Transports] = {}
        made = zip(doorways.numbers, ListenerPolicies(settings).policies, transports_of(settings), strict=True)
        for number, policy, transports in made:
            policy.index = number
            self.policies[number], self._transports[number] = policy, transports
        self._sockets = list(doorways.sockets)
        self._open: dict[int, list[Acceptor]] = {}
        self._rates: dict[int, ConnectionRate[NewConnection]] = {}
        self._shard: Shard | None = None
        self._handshakes: TransportHandshakes

    @property
    def open(self) -> list[Acceptor]:
        """Those that accept."""
        return [each for listeners in self._open.values() for each in listeners]

    @property
    def addresses(self) -> list[str]:
        found = (each.address for each in self.open)
        return [f"{host}:{port}" if port else host for host, port in found]

    def begin(self, shard: Shard) -> None:
        """Accept from the broker's sockets, which all shards share."""
        settings, pump, event = self._settings, shard.pump, shard.events.tell
        pump.pending_logins.on_shed = lambda holder, shed: event("connection.shed", address=holder, shed=shed)
        limit_pending_logins(settings, pump.pending_logins)
        self._shard = shard
        self._handshakes = TransportHandshakes(
            pump, later=shard.timers.later, event=event, count_max=settings.listener.tls_handshakes_max
        )
        self._bound_connections(shard)
        for number, sock in self._sockets:
            self._accept(shard, number, sock)
        self._set_rates()

    def _set_rates(self) -> None:
        for number, listener in zip(self.policies, self._settings.listeners, strict=True):
            if number in self._rates:
                self._rates[number].set(listener.connections_per_second_max)

    def _bound_connections(self, shard: Shard) -> None:
        bounds = connections_max(self._settings, len(shard.store.own))
        shard.clients.logins.connections_max = dict(zip(self.policies, bounds, strict=True))

    def _accept(self, shard: Shard, number: int, sock: socket.socket) -> None:
        policy = self.policies[number]
        setup = ConnectionSetup(
            self._transports[number], self._handshakes, shard.pump, self._settings.mqtt.outbox_bytes_max,
            welcome=lambda connection: welcome(shard, connection, policy),
        )  # fmt: skip
        if number not in self._rates:
            self._rates[number] = listener_rate(policy, 0, shard.events.tell)
        self._open.setdefault(number, []).append(
            Acceptor(
                sock, setup, connections_max=shard.clients.logins.connections_max[number],
                event=shard.events.tell, later=shard.timers.later, rate=self._rates[number],
            )
        )  # fmt: skip

    # Reload

    def certificate_watch(self) -> CertificateWatch:
        """Looks whether files of certificates have changed, without a reload."""
        return CertificateWatch("listeners", lambda: tls_paths(self._settings), self._renew_tls, tell)

    def _renew_tls(self) -> None:
        """raises: ConfigError, with nothing changed"""
        renew_tls(self._settings, [self._transports[number] for number in self.policies])

    def prepare(self, old: Settings, wanted: Settings) -> ListenerChange:
        """raises: ConfigError, with nothing changed"""
        transports_of(wanted)  # every file is good, before anything is bound
        change = self._source.prepare(old, wanted)
        try:
            reload_tls(wanted, [
                (after, self._transports[number])
                for (before, after), number in zip(change.pairs, change.numbers, strict=True)
                if before is not None and after is not None
            ])  # fmt: skip
        except Exception:
            self._source.undo(change, old)
            raise
        return change

    def commit(
        self,
        change: ListenerChange,
        wanted: Settings,
        made: list[ListenerPolicy],
        now: Settings,
        shard: Shard,
    ) -> None:
        """made: policies of the wanted settings; now: the settings in force from here on"""
        self._settings = now
        gone = [self.policies[number] for number in change.removed]
        for number in change.removed:
            for listener in self._open.pop(number, ()):
                listener.close()
        for each in self._sockets:
            if each.listener in change.removed:
                each.sock.close()
        self._sockets = [each for each in self._sockets if each.listener not in change.removed]
        self._take(change, made, transports_of(wanted) if change.added else [])
        added = [ListeningSocket(number, sock) for number, found in change.added.items() for sock in found]
        self._sockets += added
        if self._shard is not None and (added or change.removed):
            self._bound_connections(shard)
            for number, sock in added:
                self._accept(shard, number, sock)
        for number in change.removed:
            self._rates.pop(number, None)
        self._set_rates()
        self._source.commit(change, wanted)
        for policy in gone:
            policy.is_removed = True
        if gone:
            dismiss_clients(shard, {policy.index for policy in gone})

    def _take(self, change: ListenerChange, made: list[ListenerPolicy], transports: list[Transports]) -> None:
        policies = {}
        for (_, after), number in zip(change.pairs, change.numbers, strict=True):
            policy = self.policies.get(number)
            if policy is None:
                assert after is not None
                policy = made[after]
                policy.index = number
                self._transports[number] = transports[after]
            elif after is not None:
                policy.become(made[after])
            policies[number] = policy
        self.policies.clear()  # others look at this one
        self.policies.update(policies)
        for number in change.removed:
            self._transports.pop(number, None)


def dismiss_clients(shard: Shard, listeners: set[int]) -> None:
    """Disconnect who came through these listeners, some sessions a turn; the sessions stay."""
    left: list[Session] = list(shard.clients.broker.registry.sessions.values())

    def go_on() -> None:
        some = left[-SESSIONS_A_TURN:]
        del left[-SESSIONS_A_TURN:]
        for session in some:
            if session.link is not None and session.link.client.policy.index in listeners:
                session.link.dismiss(Reason.ADMINISTRATIVE_ACTION, REMOVED)
        if left:
            shard.timers.next_turn(go_on)

    go_on()
