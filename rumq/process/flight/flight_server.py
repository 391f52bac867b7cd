"""The Flight server process: start from settings, reload at SIGHUP, stop at SIGTERM."""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commitlog import RealFiles
from rumq.errors import ConfigError, DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.listener_policies import ListenerPolicies, as_listener
from rumq.process.listeners.listening_sockets import warn_if_exposed
from rumq.process.wiring.sidecars import check_flight
from rumq.settings.table import Flight, Settings
from rumq.settings.types.setting_types import FLIGHT_PORT
from rumq.supervision.broker_parent import end_with_broker, is_orphan

if TYPE_CHECKING:
    from rumq.flight.serving.call_authorization import CallAuthorization
    from rumq.flight.serving.server import LogServer

NICE = 10  # the broker has priority
STOP_SECONDS = 2.0
DRAIN_SECONDS_MAX = 600.0  # of calls that were running when certificates were renewed
BIND_SECONDS = 2.0  # a killed predecessor may still hold the port
WAITED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

Load = Callable[[], Settings]


def serve(load: Load, *, for_broker: bool) -> int:
    """load: the settings, read again at each reload; for_broker: it ends with the broker that started it

    raises: RumqError where it cannot listen, ConfigError, DataDirectoryError"""
    parent = end_with_broker() if for_broker else None
    settings = load()
    setup_events(settings.events.format, settings.events.level)
    check_flight(settings)
    if not RealFiles().exists(f"{settings.data.dir}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    os.nice(NICE)
    # Before gRPC starts threads, which inherit the mask: signals are delivered to `wait` only.
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # client errors are events, or none
    authorization = call_authorization(settings)
    servers = FlightServers(settings.flight, open_server(settings, authorization))
    gc.freeze()
    try:
        wait(load, settings, authorization, servers, parent)
    finally:
        if not servers.close(STOP_SECONDS):
            os._exit(0)  # a client that does not read blocks its thread, which would delay the exit
    return 0


def wait(
    load: Load, settings: Settings, authorization: CallAuthorization, servers: FlightServers, parent: int | None
) -> None:
    """Wait for a signal to stop, or the end of the parent broker; SIGHUP reads users, rules and certificates again."""
    sender = EventSender(RING, settings.data.dir, "flight")
    flight = settings.flight

    def renew() -> None:
        check_flight(settings)
        servers.renew(**certificates(flight))

    watch = CertificateWatch(
        "flight", lambda: [flight.tls_certificate, flight.tls_key, flight.tls_authority], renew, tell
    )
    while parent is None or not is_orphan(parent):
        if parent is not None:
            sender.flush()
        watch.look_sometimes(time.monotonic())
        if servers.fault is not None:
            raise servers.fault  # whoever has started this process starts it again
        found = signal.sigtimedwait(WAITED, 1.0)
        if found is None or (found.si_signo == signal.SIGINT and parent is not None):
            continue  # a terminal sends it to the broker too, which stops us
        if found.si_signo != signal.SIGHUP:
            return
        try:
            wanted = load()
            check_flight(wanted)
            policy = ListenerPolicies(wanted).flight()
        except ConfigError as fault:
            tell("settings.refused", why=str(fault))
        else:
            setup_events(wanted.events.format, wanted.events.level)
            authorization.replace_rules(policy.authenticator, policy.rules, exact=policy.exact_refusals)
            authorization.slow_guesses(wanted.auth.guess_seconds_max)
            tell("flight.reloaded", rules=policy.rules is not None)
            if flight.tls_certificate:
                watch.read_again()


def call_authorization(settings: Settings) -> CallAuthorization:
    from rumq.flight.serving.call_authorization import CallAuthorization

    policy = ListenerPolicies(settings).flight()
    return CallAuthorization(
        policy.authenticator, policy.rules, now=time.monotonic, now_us=lambda: time.time_ns() // 1000,
        wait=time.sleep, exact=policy.exact_refusals, guess_seconds_max=settings.auth.guess_seconds_max,
        hashes_max=max(1, (os.cpu_count() or 2) // 2),
    )  # fmt: skip


def open_server(settings: Settings, authorization: CallAuthorization) -> LogServer:
    """Open a server and report it (listener.bound). raises: RumqError"""
    import pyarrow as pa

    from rumq.flight.serving.served_log import ServedLog
    from rumq.flight.serving.server import LogServer

    flight = settings.flight
    port = max(0, flight.port or FLIGHT_PORT)
    if port:
        check_free(flight.host, port)
    try:
        server = LogServer(
            location_of(flight, port),
            ServedLog(settings.data.dir),
            authorization,
            event=tell,
            **certificates(flight),
        )
    except (OSError, pa.ArrowException) as fault:
        raise cannot_listen(flight.host, port, str(fault).partition(". Detail")[0]) from None
    protocol = "flight over TLS" if flight.tls_certificate else "flight"
    tell("listener.bound", host=flight.host, port=server.port, protocol=protocol)
    warn_if_exposed(settings, as_listener(flight), flight.host, server.port, "read the whole log")
    return server


def location_of(flight: Flight, port: int) -> str:
    host = {"*": "[::]"}.get(flight.host, f"[{flight.host}]" if ":" in flight.host else flight.host)
    return f"{'grpc+tls' if flight.tls_certificate else 'grpc'}://{host}:{port}"


class FlightServers:
    """The server of a port, and those before it, whose certificates are renewed and whose last calls go on.

    gRPC's credentials do not change: a renewal is another server at the same port. Between the two nobody listens for
    some milliseconds, in which clients try again."""

    def __init__(self, flight: Flight, server: LogServer) -> None:
        self._flight, self._server = flight, server
        self._retired: list[LogServer] = []
        self.fault: RumqError | None = None  # nobody listens any more

    def renew(self, **certificates: Any) -> None:
        """certificates: of the next server. raises: RumqError: `fault`"""
        import pyarrow as pa

        before, flight = self._server, self._flight
        before.retire(DRAIN_SECONDS_MAX)
        self._retired = [each for each in self._retired if each.is_serving] + [before]
        until = time.monotonic() + BIND_SECONDS
        while True:
            try:
                self._server = before.again(location_of(flight, before.port), **certificates)
                return
            except (OSError, pa.ArrowException) as fault:
                if time.monotonic() > until:
                    self.fault = cannot_listen(flight.host, before.port, str(fault).partition(". Detail")[0])
                    raise self.fault from None
            time.sleep(0.002)

    def close(self, seconds_max: float) -> bool:
        """End running calls with a retryable error; False if some are still running after this time."""
        until = time.monotonic() + seconds_max
        ended = [each.close(max(0.0, until - time.monotonic())) for each in (self._server, *self._retired)]
        return all(ended)


def certificates(flight: Flight) -> dict[str, Any]:
    """TLS arguments of the server; `check_flight` has checked the files."""
    if not flight.tls_certificate:
        return {}
    chain = Path(flight.tls_certificate).read_bytes()
    key = Path(flight.tls_key or flight.tls_certificate).read_bytes()
    authority = Path(flight.tls_authority).read_bytes() if flight.tls_authority else None
    return {"certificates": [(chain, key)], "authority": authority}


def check_free(host: str, port: int) -> None:
    """gRPC would silently share a port that is in use (SO_REUSEPORT). raises: RumqError"""
    until = time.monotonic() + BIND_SECONDS
    while True:
        try:
            for family, kind, protocol, _, address in socket.getaddrinfo(
                None if host == "*" else host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                with socket.socket(family, kind, protocol) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:
                        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    probe.bind(address)
            return
        except OSError as fault:
            if time.monotonic() > until:
                raise cannot_listen(host, port, fault.strerror or str(fault)) from None
            time.sleep(0.05)


def cannot_listen(host: str, port: int, why: str) -> RumqError:
    return RumqError(
        f"cannot listen on {host}:{port}: {why}; give another flight.port or flight.host, or stop the process there"
    )
