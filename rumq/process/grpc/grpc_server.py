"""The gRPC server's process: start from settings, reload at SIGHUP, stop at SIGTERM or with its broker."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from commitlog import RealFiles
from rumq.errors import DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.net.sockets.fd_limit import raise_limit
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.gateway_listener import with_gateway
from rumq.process.listeners.listener_policies import grpc_as_listener
from rumq.process.listeners.listening_sockets import warn_if_exposed
from rumq.process.wiring.door_memory import freeze
from rumq.process.wiring.sidecars import check_grpc
from rumq.settings.table import Grpc, Settings
from rumq.settings.types.setting_types import GRPC_PORT
from rumq.supervision.broker_parent import end_with_broker, is_orphan

if TYPE_CHECKING:
    import grpc

    from rumq.process.grpc.parts import GrpcParts

NICE = 10  # the broker has priority
BIND_SECONDS = 2.0  # a killed predecessor may still hold the port
PARENT_SECONDS = 1.0
EVERY_ADDRESS = ("*", "")

Load = Callable[[], Settings]


def serve(load: Load, *, for_broker: bool) -> int:
    """load: the settings, read again at each reload; for_broker: it ends with the broker that started it

    raises: RumqError where it cannot listen, ConfigError, DataDirectoryError"""
    parent = end_with_broker() if for_broker else None
    load = partial(with_port, load)
    settings = load()
    setup_events(settings.events.format, settings.events.level)
    check_grpc(settings)
    if not RealFiles().exists(f"{settings.data.dir}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    os.nice(NICE)
    raise_limit()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # faults of callers are answers, and ours are events
    logging.getLogger("grpc").setLevel(logging.CRITICAL + 1)
    asyncio.run(run(load, settings, parent))
    return 0


def with_port(load: Load) -> Settings:
    """A server that is started by hand has a port. raises: ConfigError"""
    settings = load()
    if not settings.grpc.port:
        settings = msgspec.structs.replace(settings, grpc=msgspec.structs.replace(settings.grpc, port=GRPC_PORT))
    return with_gateway(settings)


async def run(load: Load, settings: Settings, parent: int | None) -> None:
    """Serve until a signal, or the end of the broker that is the parent. parent: None: it was started by hand"""
    from rumq.process.grpc.parts import parts_of
    from rumq.services.figures_socket import answer_figures

    parts = parts_of(settings)
    certificates = GrpcCertificates(settings.grpc)
    await bind(settings, parts, certificates)
    freeze()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    if parent is None:
        loop.add_signal_handler(signal.SIGINT, stopping.set)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the broker too, which stops us
    loop.add_signal_handler(signal.SIGHUP, partial(reload, load, parts, certificates))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    await parts.server.start()
    tasks = [
        asyncio.create_task(parts.tail.run()),
        asyncio.create_task(parts.watch_health()),
        asyncio.create_task(parts.watch_copies()),
        asyncio.create_task(parts.door.run()),
        asyncio.create_task(answer_figures(settings.data.dir, parts.counted)),
        asyncio.create_task(attend(settings, certificates, parent, stopping)),
    ]
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await parts.stop(settings.grpc.drain_seconds_max)
        for task in (*tasks, stop):
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for fault in ended:
        if isinstance(fault, Exception):
            raise fault


async def attend(
    settings: Settings, certificates: GrpcCertificates, parent: int | None, stopping: asyncio.Event
) -> None:
    """Look at the parent, and at the files of certificates; send events to the gateway."""
    sender = EventSender(RING, settings.data.dir, "grpc")
    while parent is None or not is_orphan(parent):
        if parent is not None:
            sender.flush()
        certificates.watch.look_sometimes(time.monotonic())
        await asyncio.sleep(PARENT_SECONDS)
    stopping.set()


def reload(load: Load, parts: GrpcParts, certificates: GrpcCertificates) -> None:
    """Users, tokens, rules and certificates; invalid ones change nothing."""
    try:
        settings = load()
        check_grpc(settings)
        parts.reload(settings)
    except RumqError as fault:
        tell("settings.refused", why=str(fault))
        return
    setup_events(settings.events.format, settings.events.level)
    tell("grpc.reloaded", tokens=len(parts.callers.admission.tokens))
    if settings.grpc.tls_certificate:
        certificates.watch.read_again()


class GrpcCertificates:
    """TLS of the server: the files as they were read last, for connections from then on."""

    def __init__(self, settings: Grpc) -> None:
        self._settings = settings
        self._current: grpc.ServerCertificateConfiguration | None = None
        self.watch = CertificateWatch(
            "grpc", lambda: [settings.tls_certificate, settings.tls_key, settings.tls_authority], self._read, tell
        )

    def credentials(self) -> grpc.ServerCredentials | None:
        """None: without TLS. raises: OSError"""
        import grpc

        if not self._settings.tls_certificate:
            return None
        self._read()
        return grpc.dynamic_ssl_server_credentials(
            self.current(), self.current, require_client_authentication=bool(self._settings.tls_authority)
        )

    def current(self) -> grpc.ServerCertificateConfiguration:
        """For gRPC, which asks at each handshake, from its threads."""
        assert self._current is not None
        return self._current

    def _read(self) -> None:
        """raises: OSError, ConfigError"""
        import grpc

        from rumq.process.listeners.listener_policies import GRPC
        from rumq.process.listeners.transports import transport_of

        transport_of(GRPC, grpc_as_listener(self._settings), False)
        chain = Path(self._settings.tls_certificate).read_bytes()
        key = Path(self._settings.tls_key or self._settings.tls_certificate).read_bytes()
        authority = Path(self._settings.tls_authority).read_bytes() if self._settings.tls_authority else None
        self._current = grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=authority)


async def bind(settings: Settings, parts: GrpcParts, certificates: GrpcCertificates) -> None:
    """Open the port and report it (listener.bound). raises: RumqError"""
    grpc = settings.grpc
    host, wanted = grpc.host, max(0, grpc.port)
    credentials = certificates.credentials()
    until = time.monotonic() + BIND_SECONDS
    while True:
        try:
            port = parts.server.bind(address_of(host, wanted), credentials)
            break
        except RuntimeError as fault:
            if time.monotonic() > until:
                why = str(fault).partition(";")[0]
                raise RumqError(
                    f"cannot listen on {host}:{wanted}: {why}; give another grpc.port or grpc.host, or stop the "
                    "process there"
                ) from None
            await asyncio.sleep(0.05)
    tell("listener.bound", host=host, port=port, protocol="grpc over TLS" if credentials else "grpc")
    warn_if_exposed(settings, grpc_as_listener(grpc), host, port, "publish to every topic and read the whole log")


def address_of(host: str, port: int) -> str:
    if host in EVERY_ADDRESS:
        return f"[::]:{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
