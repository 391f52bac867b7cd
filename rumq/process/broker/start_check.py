"""Everything that would keep a broker from starting, found without starting it: `rumqd check`.

Changes nothing: a data directory is neither made nor locked for longer than it takes to see who has it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial

from commitlog import RealFiles, StoreError
from commitlog.disk.os_errors import at_start
from commitlog.log.store import check_format
from rumq.errors import ConfigError, DataDirectoryError, RumqError
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.listening_sockets import address_sockets
from rumq.process.listeners.transports import transports_of
from rumq.process.wiring.sidecars import check_sidecars
from rumq.process.wiring.streams import streams
from rumq.settings.table import Listener, Settings
from rumq.unix_address import Address

CLUSTER_FILES = ("etcd_password_file", "etcd_authority", "etcd_certificate", "etcd_key")


def faults(settings: Settings, is_running: bool) -> Iterator[RumqError]:
    """Of each part the first that is wrong. is_running: a broker has the data directory, and so the addresses"""
    checks: list[Callable[[], object]] = [
        lambda: ListenerPolicies(settings, says_exposed=False),
        lambda: transports_of(settings),
        lambda: check_sidecars(settings),
        lambda: check_data(settings),
        lambda: check_cluster_files(settings),
        lambda: check_function_code(settings),
    ]
    if not is_running:
        checks += [partial(check_address, each) for each in addresses(settings)]
    for check in checks:
        try:
            check()
        except RumqError as fault:
            yield fault


def addresses(settings: Settings) -> Iterator[Listener]:
    """Those that the broker and its processes listen on."""
    yield from settings.listeners
    if settings.grpc.port > 0:
        yield Listener(host=settings.grpc.host, port=settings.grpc.port)
    if settings.kafka.port > 0:
        yield Listener(host=settings.kafka.host, port=settings.kafka.port)
    if settings.flight.port > 0:
        yield Listener(host=settings.flight.host, port=settings.flight.port)
    if settings.cluster.name:
        for port in range(settings.cluster.port + 1, settings.cluster.port + settings.cluster.shards + 1):
            yield Listener(host=settings.cluster.host, port=port)


def check_address(listener: Listener) -> None:
    """raises: RumqError if it is in use, or not ours to take"""
    if listener.path:
        check_path(listener.path)
        return
    for sock in address_sockets(listener):
        sock.close()


def check_path(path: str) -> None:
    """raises: RumqError if a Unix socket could not be made there"""
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK | os.X_OK):
        why = os.strerror(errno.EACCES if os.path.isdir(folder) else errno.ENOENT)
        raise RumqError(f"cannot listen on {path}: {why}; give another listener.path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            with Address(path) as address:
                probe.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return  # free, or left by a broker that was killed, which is replaced
        except OSError:
            pass
    raise RumqError(f"cannot listen on {path}: it exists; give another listener.path, or stop the process that uses it")


def in_use(data: str) -> bool:
    """Whether a broker has the data directory. A free lock is ours for a moment, shared, for which a broker waits."""
    try:
        handle = os.open(os.path.join(data, "LOCK"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def check_data(settings: Settings) -> None:
    """raises: RumqError if the directory could not be used, or not be made"""
    data = os.path.abspath(settings.data.dir)
    above = data
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise DataDirectoryError(settings.data.dir, f"{above}: {os.strerror(errno.ENOTDIR)}")
    if not os.access(above, os.R_OK | os.W_OK | os.X_OK):
        raise DataDirectoryError(
            settings.data.dir, f"{above} cannot be read and written by this user: chown or chmod it"
        )
    if above == data:
        try:
            if os.path.exists(f"{data}/FORMAT"):
                check_format(RealFiles(), data)
        except StoreError as fault:
            raise DataDirectoryError(settings.data.dir, fault.problem) from None
        except OSError as fault:
            raise DataDirectoryError(settings.data.dir, at_start(fault)) from None
    streams(settings, data)


def check_function_code(settings: Settings) -> None:
    """raises: ConfigError for functions that cannot be loaded, or whose result is none"""
    if not settings.function:
        return
    from rumq.process.wiring.function_settings import check_code, check_functions  # most brokers have none

    try:
        check_functions(settings)
    except ConfigError:
        return  # `check_sidecars` has said so
    if faults := [each for fault in check_code(settings) for each in fault.faults]:
        raise ConfigError(*faults)


def check_cluster_files(settings: Settings) -> None:
    """raises: RumqError for a file of [cluster] that cannot be used"""
    for key in CLUSTER_FILES if settings.cluster.name else ():
        if path := getattr(settings.cluster, key):
            try:
                with open(path, "rb"):
                    pass
            except OSError as fault:
                raise RumqError(f'cluster.{key} = "{path}": {fault.strerror}') from None
    if settings.cluster.name:
        from rumq.process.certificates.node_certificates import (
            check_node_certificates,  # a broker alone needs none of it
        )

        check_node_certificates(settings)
