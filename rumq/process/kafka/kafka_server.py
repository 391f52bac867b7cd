"""The Kafka server's process: start from settings, reload at SIGHUP, stop at SIGTERM or with its broker."""

from __future__ import annotations

import os
import signal
import ssl
import time
from collections.abc import Callable
from functools import partial

import msgspec
import trio

from commitlog import RealFiles
from rumq.cluster.connections.agent_views import AgentViews
from rumq.errors import ConfigError, DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.kafka.connection import ConnectionBounds
from rumq.kafka.figures_socket import answer_figures
from rumq.kafka.server import KafkaServer, listen
from rumq.net.listening.listener import open_sockets
from rumq.net.sockets.fd_limit import raise_limit, room_for_connections
from rumq.process.kafka.group_parts import groups_of
from rumq.process.kafka.parts import door_of
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.listener_policies import KAFKA, ListenerPolicies, kafka_as_listener
from rumq.process.listeners.listening_sockets import warn_if_exposed
from rumq.process.listeners.transports import transport_of
from rumq.process.wiring.door_memory import freeze
from rumq.process.wiring.sidecars import check_kafka
from rumq.settings.table import Kafka, Settings
from rumq.settings.types.setting_types import KAFKA_PORT
from rumq.supervision.broker_parent import end_with_broker, is_orphan

NICE = 10  # the broker has priority
BIND_SECONDS = 2.0  # a killed predecessor may still hold the port
PARENT_SECONDS = 1.0
BACKLOG = 1024

Load = Callable[[], Settings]


def serve(load: Load, *, for_broker: bool) -> int:
    """load: the settings, read again at each reload; for_broker: it ends with the broker that started it

    raises: RumqError where it cannot listen, ConfigError, DataDirectoryError"""
    parent = end_with_broker() if for_broker else None
    load = partial(with_port, load)
    settings = load()
    setup_events(settings.events.format, settings.events.level)
    check_kafka(settings)
    if not RealFiles().exists(f"{settings.data.dir}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    os.nice(NICE)
    room = room_for_connections(raise_limit(), 0)
    tls = KafkaTls(settings.kafka)
    server = KafkaServer(
        door_of(settings),
        ConnectionBounds(settings.kafka.request_bytes_max, settings.kafka.idle_seconds_max),
        min(settings.kafka.connections_max, max(2, room)),
        lambda: tls.context,
    )
    freeze()
    trio.run(run, load, settings, server, tls, parent)
    return 0


def with_port(load: Load) -> Settings:
    """A server that is started by hand has a port. raises: ConfigError"""
    settings = load()
    if settings.kafka.port:
        return settings
    return msgspec.structs.replace(settings, kafka=msgspec.structs.replace(settings.kafka, port=KAFKA_PORT))


async def run(load: Load, settings: Settings, server: KafkaServer, tls: KafkaTls, parent: int | None) -> None:
    """Serve until a signal, or the end of the broker that is the parent. parent: None: it was started by hand"""
    groups = await groups_of(settings)
    server.door.own_groups, server.door.seat = groups.own, groups.seat
    listeners = await bind(settings)
    address = groups.address(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            nursery.start_soon(server.door.log.run)
            if groups.own is not None:
                nursery.start_soon(groups.own.run)
            if groups.seat is not None:
                data = os.path.abspath(settings.data.dir)
                nursery.start_soon(AgentViews(data, "kafka", groups.seat.see, address).run)
                if groups.may_serve:
                    nursery.start_soon(groups.seat.run)
            nursery.start_soon(answer_figures, settings.data.dir, server)
            nursery.start_soon(attend, settings, tls, parent, nursery.cancel_scope)
            await nursery.start(listen, server, listeners)
            async for number in signals:
                if number == signal.SIGHUP:
                    reload(load, server, tls)
                elif number == signal.SIGTERM or parent is None:
                    break  # a terminal sends SIGINT to the broker too, which stops us
        nursery.cancel_scope.cancel()
    server.door.log.close()


async def attend(settings: Settings, tls: KafkaTls, parent: int | None, scope: trio.CancelScope) -> None:
    """Look at the parent, and at the files of certificates; send events to the gateway."""
    sender = EventSender(RING, settings.data.dir, "kafka")
    while parent is None or not is_orphan(parent):
        if parent is not None:
            sender.flush()
        tls.watch.look_sometimes(time.monotonic())
        await trio.sleep(PARENT_SECONDS)
    scope.cancel()


def reload(load: Load, server: KafkaServer, tls: KafkaTls) -> None:
    """Users, rules and certificates; invalid ones change nothing. Clients come again, and log in anew."""
    try:
        settings = load()
        check_kafka(settings)
        policy = ListenerPolicies(settings).kafka()
    except ConfigError as fault:
        tell("settings.refused", why=str(fault))
        return
    setup_events(settings.events.format, settings.events.level)
    logins = server.door.logins
    logins.replace_rules(policy.authenticator, policy.rules, exact=policy.exact_refusals)
    logins.slow_guesses(settings.auth.guess_seconds_max)
    server.end_all()
    tell("kafka.reloaded", rules=policy.rules is not None)
    if settings.kafka.tls_certificate:
        tls.watch.read_again()


class KafkaTls:
    """context: of the files as they were read last, for connections from then on; None: without TLS"""

    def __init__(self, settings: Kafka) -> None:
        self._settings = settings
        self.context: ssl.SSLContext | None = None
        self._read()
        self.watch = CertificateWatch(
            "kafka", lambda: [settings.tls_certificate, settings.tls_key, settings.tls_authority], self._read, tell
        )

    def _read(self) -> None:
        """raises: ConfigError"""
        if self._settings.tls_certificate:
            transport = transport_of(KAFKA, kafka_as_listener(self._settings), False)
            assert transport.tls is not None
            self.context = transport.tls.context


async def bind(settings: Settings) -> list[trio.SocketListener]:
    """Open the listening sockets and report them (listener.bound). raises: RumqError"""
    kafka = settings.kafka
    wanted = max(0, kafka.port)
    until = time.monotonic() + BIND_SECONDS
    while True:
        try:
            found = open_sockets(kafka.host, wanted, BACKLOG)
            break
        except OSError as fault:
            if time.monotonic() > until:
                raise RumqError(
                    f"cannot listen on {kafka.host}:{wanted}: {fault.strerror or fault}; give another kafka.port or "
                    "kafka.host, or stop the process there"
                ) from None
            await trio.sleep(0.05)
    port = found[0].getsockname()[1]
    protocol = "kafka over TLS" if kafka.tls_certificate else "kafka"
    tell("listener.bound", host=kafka.host, port=port, protocol=protocol)
    warn_if_exposed(settings, kafka_as_listener(kafka), kafka.host, port, "read the whole log")
    return [trio.SocketListener(trio.socket.from_stdlib_socket(each)) for each in found]
