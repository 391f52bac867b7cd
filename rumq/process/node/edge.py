"""The edge of a node as a process: accepts clients and passes them to the leaders of their shards, until a signal.

It owns the node's Flight server and its gateway."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from rumq.auth.connection_rate import ConnectionRate
from rumq.cluster.connections.server_reference import maybe_reference
from rumq.cluster.control.agent_messages import SOCKET_NAME
from rumq.cluster.edge.assembly import Edge, EdgePlatform, build_edge
from rumq.errors import RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.loop.loop import Loop
from rumq.net.lingering_close import LingeringClose
from rumq.net.listening.listener import Acceptor, NewConnection, listener_rate
from rumq.net.listening.transports import ConnectionSetup, Transports
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import ShardSocket
from rumq.net.transport.relay import RELAY_BYTES
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.process.certificates.node_certificates import node_tls, watched_node_tls
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.client_connections import connections_max
from rumq.process.listeners.limits import limit_pending_logins, limits
from rumq.process.listeners.listener_changes import paired
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.listening_sockets import ListeningSocket
from rumq.process.listeners.setting_changes import in_force
from rumq.process.listeners.transports import reload_tls, renew_tls, tls_paths, transports_of
from rumq.process.shard.process_tuning import freeze, keep_memory
from rumq.process.wiring.sidecars import node_sidecars
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.settings.table import Settings
from rumq.supervision.sidecars import Sidecars
from rumq.supervision.supervisor import HAS_RELOADED, IS_READY

SOCKETS_A_CLIENT = 2  # of a relayed client: its own, and one to its leader
LINGER_SECONDS_MAX = 0.25
LEAVE_SECONDS_MAX = 0.25  # until the leaders of relayed clients have ended them, and said where else to go
EVENTS_SECONDS = 0.5  # until the gateway has what was told


@dataclass(frozen=True, slots=True)
class EdgePlace:
    """Environment of an edge. data: the data directory; doors: of the cluster's shards by number, and the edge's own

    doorways: the listening sockets; ready: a pipe to report it, or -1
    sources: command line flags that give another process the same settings"""

    data: str
    doors: list[ShardSocket]
    doorways: list[ListeningSocket]
    ready: int = -1
    sources: Sequence[str] = ()


def serve_edge(settings: Settings, place: EdgePlace, read: Callable[[], Settings]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. read: returns the current settings, for SIGHUP

    raises: ConfigError"""
    keep_memory()
    policies, transports, tls = (
        ListenerPolicies(settings).policies,
        transports_of(settings),
        node_tls(settings),
    )
    edge = build_edge(
        place.doors, policies, limits(settings), os.path.join(place.data, SOCKET_NAME), tell,
        platform=EdgePlatform(
            pump=lambda turn: Pump(turn, coalesce_seconds=settings.listener.coalesce_us / 1_000_000)
        ),
        tls=tls,
    )  # fmt: skip
    edge.pump.lingering = LingeringClose(edge.pump, later=edge.timers.later)
    edge.agent.open()
    process = EdgeProcess(settings, place, edge, policies, transports, read, watched_node_tls(settings, tls))
    freeze()
    Loop(edge.pump, edge.turn).run(process.run)
    edge.pump.close()
    return 0


class EdgeProcess:
    """A built edge with its listeners and signals."""

    def __init__(
        self, settings: Settings, place: EdgePlace, edge: Edge, policies: list[ListenerPolicy],
        transports: list[Transports], read: Callable[[], Settings], certificates: CertificateWatch | None,
    ) -> None:  # fmt: skip
        """certificates: of connections between nodes, None for plain bytes"""
        self._settings, self._place, self._edge, self._read = settings, place, edge, read
        self._policies, self._transports = policies, transports
        self._listeners: list[Acceptor] = []
        self._rates: list[ConnectionRate[NewConnection]] = []
        listeners = CertificateWatch("listeners", lambda: tls_paths(self._settings), self._renew_tls, tell)
        self._certificates = [listeners] if certificates is None else [listeners, certificates]
        # Whoever leads, this node serves its copies, and answers for the cluster.
        self._sidecars = Sidecars(node_sidecars(settings, place.data, list(place.sources)))

    async def run(self) -> None:
        """Serve until a stop signal."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            self._listeners += self._open_listeners()
            self._sidecars.start()
            if self._settings.gateway.port:
                self._send_events(EventSender(RING, self._place.data, "edge"))
            self._announce(IS_READY)
            async with trio.open_nursery() as services:
                for each in self._certificates:
                    services.start_soon(each.run)
                async for number in signals:
                    if number != signal.SIGHUP:
                        break
                    self._reload()
                    self._announce(HAS_RELOADED)
                services.cancel_scope.cancel()
        await self._stop()

    def _open_listeners(self) -> list[Acceptor]:
        settings, edge = self._settings, self._edge
        pump, later, event = edge.pump, edge.timers.later, edge.events.tell
        pump.pending_logins.on_shed = lambda holder, shed: event("connection.shed", address=holder, shed=shed)
        limit_pending_logins(settings, pump.pending_logins)
        handshakes = TransportHandshakes(pump, later=later, event=event, count_max=settings.listener.tls_handshakes_max)
        bounds = connections_max(settings, 0, SOCKETS_A_CLIENT)

        def setup(number: int) -> ConnectionSetup:
            policy = self._policies[number]
            return ConnectionSetup(
                self._transports[number], handshakes, pump, RELAY_BYTES,
                welcome=lambda connection: edge.welcome(connection, policy),
            )  # fmt: skip

        self._rates = [listener_rate(policy, 0, event) for policy in self._policies]
        self._set_rates()
        return [
            Acceptor(
                sock,
                setup(number),
                connections_max=bounds[number],
                event=event,
                later=later,
                rate=self._rates[number],
            )
            for number, sock in self._place.doorways
        ]

    def _set_rates(self) -> None:
        for rate, listener in zip(self._rates, self._settings.listeners, strict=True):
            rate.set(listener.connections_per_second_max)

    def _reload(self) -> None:
        """Apply what concerns connections before their login; the leaders tell what has changed."""
        try:
            wanted = self._read()
            made = ListenerPolicies(wanted, says_exposed=False).policies
            transports_of(wanted)
            pairs = paired(self._settings, wanted)
            both = [(before, after) for before, after in pairs if before is not None and after is not None]
            reload_tls(wanted, [(after, self._transports[before]) for before, after in both])
        except RumqError as fault:
            tell("settings.refused", why=str(fault))
            return
        now = in_force(self._settings, wanted)
        setup_events(now.events.format, now.events.level)
        self._edge.broker.limits = limits(now)
        limit_pending_logins(now, self._edge.pump.pending_logins)
        for before, after in both:
            self._policies[before].become(made[after])
        self._settings = now
        self._set_rates()
        self._sidecars.reload()
        listeners, *between_nodes = self._certificates
        listeners.note()
        for each in between_nodes:
            each.read_again()

    def _renew_tls(self) -> None:
        """raises: ConfigError, with nothing changed"""
        renew_tls(self._settings, self._transports)

    def _send_events(self, sender: EventSender) -> None:
        sender.flush()
        self._edge.timers.later(EVENTS_SECONDS, partial(self._send_events, sender))

    def _announce(self, what: bytes) -> None:
        if self._place.ready >= 0:
            os.write(self._place.ready, what)

    async def _stop(self) -> None:
        """Accept nothing more, and end what is here: relayed clients connect to another node."""
        edge = self._edge
        for listener in self._listeners:
            listener.close()
        view = edge.placement.view
        edge.relays.leave((maybe_reference(view, view.node) if view is not None else None) or "")
        edge.agent.close()
        self._sidecars.stop()
        with trio.move_on_after(LEAVE_SECONDS_MAX):
            while len(edge.relays):
                await trio.sleep(0.005)
        for connection in list(edge.pump.connections.values()):
            if not connection.link.is_bus:
                connection.link.end(with_will=False)
        with trio.move_on_after(LINGER_SECONDS_MAX):
            while edge.pump.connections or edge.pump.lingering:
                await trio.sleep(0.005)
