"""The gateway's process: start from settings, reload at SIGHUP, stop at SIGTERM or with its broker."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from commitlog import RealFiles
from rumq.auth.credentials.files import read_secrets
from rumq.auth.credentials.passwords import parse as parse_users
from rumq.bridge.counts import FOLDER as BRIDGES_FOLDER
from rumq.bridge.counts import are_live, read_elsewhere, read_live_figures
from rumq.bridge.counts import read_figures as read_bridge_figures
from rumq.errors import DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.output import setup_events
from rumq.functions.function_counts import FOLDER, read_figures
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.access.credential_files import CredentialFiles
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token
from rumq.gateway.app import App
from rumq.gateway.broker.cluster_client import ClusterClient
from rumq.gateway.broker.event_feed import EventFeed
from rumq.gateway.broker.event_socket import receive_events
from rumq.gateway.broker.publishers import PublishConnections
from rumq.gateway.broker.service_client import ask_kafka, maybe_kafka, maybe_services
from rumq.gateway.broker.shard_client import ShardClient
from rumq.gateway.broker.span_export import SpanExporter
from rumq.gateway.handlers.context import (
    BridgeReport,
    BrokerAccess,
    Context,
    GatewayClock,
    GatewayFigures,
    GatewayRights,
    LogAccess,
    QueueAccess,
)
from rumq.gateway.history.sampler import HistorySampler
from rumq.gateway.http.misuse_reports import MisuseReports
from rumq.gateway.http_server import HEALTH_MAX, HttpServer
from rumq.gateway.metrics.certificate_expiry import CertificateExpiry
from rumq.gateway.metrics.scraped_figures import ScrapedFigures
from rumq.gateway.records.log_watch import LogWatch
from rumq.gateway.records.records import ServedRecords
from rumq.gateway.relay.relays import WAITING_MAX, RelayLimits, Relays
from rumq.net.listening.listener import open_sockets
from rumq.net.sockets.fd_limit import raise_limit, room_for_connections
from rumq.process.gateway.effective_settings import EffectiveSettings
from rumq.process.gateway.gateway_queues import run_queues
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.gateway_listener import gateway_socket, with_gateway
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.setting_changes import differences, need_restart
from rumq.process.wiring.door_memory import freeze
from rumq.process.wiring.gateway_settings import (
    certificates_of,
    check_gateway,
    check_tokens,
    tls_of,
    tokens_of,
    tokens_path,
    trace_headers,
)
from rumq.settings.load import Loaded
from rumq.settings.loopback import is_loopback
from rumq.settings.table import Settings
from rumq.settings.table.gateway import Gateway
from rumq.settings.types.setting_types import GATEWAY_PORT
from rumq.supervision.broker_parent import end_with_broker, is_orphan

NICE = 10  # the broker has priority
BIND_SECONDS = 2.0  # a killed predecessor may still hold the port
PARENT_SECONDS = 1.0
STOP_SECONDS = 2.0
OTHER_FILES = 128  # to ask shards, to read logs

Load = Callable[[], Loaded]


def serve(load: Load, *, for_broker: bool) -> int:
    """load: the settings, read again at each reload; for_broker: it ends with the broker that started it

    raises: RumqError where it cannot listen, ConfigError, DataDirectoryError"""
    parent = end_with_broker() if for_broker else None
    load = partial(with_port, load)
    loaded = load()
    settings = loaded.settings
    setup_events(settings.events.format, settings.events.level)
    check_gateway(settings)
    if not RealFiles().exists(f"{settings.data.dir}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    os.nice(NICE)
    raise_limit()
    context = context_of(settings)
    effective = EffectiveSettings(loaded)
    context.effective_settings = effective.rows
    freeze()
    trio.run(run, load, effective, context, parent)
    return 0


def with_port(load: Load) -> Loaded:
    """A gateway that is started by hand has a port. raises: ConfigError"""
    import msgspec

    loaded = load()
    settings = loaded.settings
    if not settings.gateway.port:
        settings = msgspec.structs.replace(
            settings, gateway=msgspec.structs.replace(settings.gateway, port=GATEWAY_PORT)
        )
    return loaded._replace(settings=with_gateway(settings))


async def run(load: Load, effective: EffectiveSettings, context: Context, parent: int | None) -> None:
    """Serve until a signal, or the end of the broker that is the parent. parent: None: it was started by hand"""
    settings = effective.started.settings
    server = HttpServer(
        App(context).build(), settings.gateway, tls_of(settings), context.broker.relays, MisuseReports(context.event),
        room=connections_room(settings.gateway),
    )  # fmt: skip
    context.figures.connections = lambda: (server.count, server.shed)
    listeners = await bind(settings)
    exporter = exporter_of(settings, context)
    context.figures.certificates = CertificateExpiry(lambda: certificates_of(settings))
    bridges = Path(settings.data.dir, BRIDGES_FOLDER)
    context.figures.bridges = lambda: read_live_figures(bridges, time.time())
    context.figures.bridge_report = lambda: BridgeReport(
        read_bridge_figures(bridges), are_live(bridges, time.time()), read_elsewhere(bridges)
    )
    context.figures.functions = partial(read_figures, Path(settings.data.dir, FOLDER))
    certificates = CertificateWatch(
        "gateway", lambda: [settings.gateway.tls_certificate, settings.gateway.tls_key],
        lambda: server.use(tls_of(settings)), tell,
    )  # fmt: skip
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            await nursery.start(context.broker.publishers.run)
            await nursery.start(run_queues, settings, context)
            nursery.start_soon(server.serve, listeners)
            nursery.start_soon(context.figures.history.run)
            nursery.start_soon(context.log.followed.run)
            nursery.start_soon(context.rights.end_expired)
            nursery.start_soon(receive_events, settings.data.dir, context.broker.events.take)
            nursery.start_soon(exporter.run)
            nursery.start_soon(certificates.run)
            nursery.start_soon(context.figures.certificates.run)
            if parent is not None:
                nursery.start_soon(end_with, parent, nursery.cancel_scope)
            async for number in signals:
                if number == signal.SIGHUP:
                    reload(load, effective, context, exporter)
                    if settings.gateway.tls_certificate:
                        certificates.read_again()
                elif number == signal.SIGTERM or parent is None:
                    break  # a terminal sends SIGINT to the broker too, which stops us
        nursery.cancel_scope.cancel()


def connections_room(gateway: Gateway) -> int:
    """HTTP connections that descriptors permit beside clients of MQTT, each with a connection to the broker too."""
    room = room_for_connections(raise_limit(), 0)
    others = 2 * gateway.mqtt_connections_max + WAITING_MAX + HEALTH_MAX + OTHER_FILES
    return max(room - others, room // 4)


async def end_with(parent: int, scope: trio.CancelScope) -> None:
    while not is_orphan(parent):
        await trio.sleep(PARENT_SECONDS)
    scope.cancel()


def exporter_of(settings: Settings, context: Context) -> SpanExporter:
    """Of the spans of traced messages. raises: ConfigError"""
    here = ShardClient(settings.data.dir, settings.shards.count)  # in a cluster each node exports its own spans
    exporter = SpanExporter(here, context.figures.spans, tell)
    exporter.configure(settings.trace, trace_headers(settings))
    return exporter


def reload(load: Load, effective: EffectiveSettings, context: Context, exporter: SpanExporter) -> None:
    """Tokens, users, rules and where spans go; invalid ones change nothing."""
    try:
        loaded = load()
        settings = loaded.settings
        fresh = context_of(settings).rights
        headers = trace_headers(settings)
    except RumqError as fault:
        tell("settings.refused", why=str(fault))
        return
    setup_events(settings.events.format, settings.events.level)
    rights = context.rights
    rights.rules, rights.users, rights.credentials = fresh.rules, fresh.users, fresh.credentials
    rights.admission.guess_seconds_max = settings.auth.guess_seconds_max
    rights.replace_tokens(fresh.admission.tokens)
    before = effective.started.settings
    effective.reread(loaded, need_restart(before, settings, list(differences(before, settings))))
    exporter.configure(settings.trace, headers)
    tell("gateway.reloaded", tokens=len(rights.admission.tokens), rules=rights.rules is not None)


def context_of(settings: Settings) -> Context:
    """raises: ConfigError"""
    policy = ListenerPolicies(settings).policies[-1]
    data, node = settings.data.dir, settings.cluster.node if settings.cluster.name else ""
    shards = ClusterClient(data) if node else ShardClient(data, settings.shards.count)
    figures = ScrapedFigures(shards.ask_here, time.monotonic)
    # The history is of the whole cluster; a scrape is of this node, as every node is scraped.
    whole = ScrapedFigures(shards.ask, time.monotonic) if node else figures
    admission = RequestAdmission(tokens_of(settings), settings.auth.guess_seconds_max)
    path = gateway_socket(settings)
    limits = RelayLimits(
        settings.gateway.mqtt_connections_max, settings.mqtt.connect_bytes_max, settings.mqtt.packet_bytes_max
    )
    hosts = HostNames(settings.gateway, is_loopback=is_loopback(settings.gateway.host))
    records = ServedRecords(data)

    def check(token: Token) -> None:
        check_tokens(settings, [token])

    credentials = CredentialFiles(tokens_path(settings), settings.auth.password_file, check)
    clock = GatewayClock(time.monotonic, lambda: time.time_ns() // 1000)
    relays = Relays(path, limits, admission, hosts, tell, time.monotonic)
    followed = LogWatch(records.views.ends, settings.gateway.watchers_max)
    queues = QueueAccess(settings.gateway.consumers_max, tell)
    rights = GatewayRights(
        admission, hosts, policy.rules, users_of(settings), credentials, clock,
        (relays.recheck, lambda _: followed.wake(), queues.recheck),
    )  # fmt: skip
    broker = BrokerAccess(shards, PublishConnections(path, node), relays, EventFeed(shards.ask, RING))
    broker.kafka = partial(ask_kafka, os.path.abspath(data))
    measured = GatewayFigures(figures, HistorySampler(whole.figures, data, tell, time.time))
    measured.services = partial(maybe_services, os.path.abspath(data))
    measured.kafka = partial(maybe_kafka, os.path.abspath(data))
    return Context(settings.gateway, rights, broker, LogAccess(records, followed), queues, measured, clock, tell)


def users_of(settings: Settings) -> list[str]:
    """Names of the password file; `ListenerPolicies` has checked it."""
    path = settings.auth.password_file
    return sorted(parse_users(read_secrets(path, strict=False), path)) if path else []


async def bind(settings: Settings) -> list[socket.socket]:
    """Open the listening sockets and report them (listener.bound). raises: RumqError"""
    gateway = settings.gateway
    port = max(0, gateway.port)
    until = time.monotonic() + BIND_SECONDS
    while True:
        try:
            found = open_sockets(gateway.host, port, 1024)
            break
        except OSError as fault:
            if time.monotonic() > until:
                why = fault.strerror or str(fault)
                raise RumqError(
                    f"cannot listen on {gateway.host}:{port}: {why}; give another gateway.port or gateway.host, "
                    "or stop the process there"
                ) from None
            await trio.sleep(0.05)
    bound = found[0].getsockname()[1]
    tell(
        "listener.bound",
        host=gateway.host,
        port=bound,
        protocol="https" if gateway.tls_certificate else "http",
    )
    if not is_loopback(gateway.host) and not gateway.tls_certificate:
        tell(
            "listener.open", host=gateway.host, port=bound,
            why="tokens cross the network in the clear: set gateway.tls_certificate, or put a proxy in front",
        )  # fmt: skip
    return found
