"""`rumqd run`: hold the data directory, bind the addresses, and run one shard here or several under a supervisor.

Each setting is interpreted by the part that it configures."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from commitlog import DirectoryInUse, NotWritable, RealFiles, StoreError
from commitlog.disk.os_errors import at_start
from commitlog.log.store import check_format, hold
from commitlog.read.backup import take_restored
from commitlog.read.inventory import missing_partitions
from rumq.compiled_modules import repair, stale_modules
from rumq.errors import DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.net.sockets.fd_passing import make_shard_sockets
from rumq.process.broker.resharding import resharded
from rumq.process.listeners.broker_secret import make_secret
from rumq.process.listeners.listening_sockets import open_listening_sockets
from rumq.process.listeners.offered_sockets import SocketOffers
from rumq.process.shard.shard import serve_shard
from rumq.process.shard.shard_store import ShardEnvironment, internal_stream
from rumq.process.wiring.disk_bounds import bounds
from rumq.process.wiring.exposure import exposed
from rumq.process.wiring.latest_settings import LatestSettings, check_files
from rumq.process.wiring.missing_partition import STATE_STREAM, lost_content
from rumq.process.wiring.page_address import page_address
from rumq.process.wiring.streams import reloaded, streams
from rumq.settings.table import Settings
from rumq.supervision.supervisor import Supervisor
from rumq.supervision.watchdog import watchdog_seconds
from rumq.version import COMPILED, VERSION, kernels

FAILED, DATA_IN_USE = 1, 3  # exit statuses, as of `rumq.cli.main`
UNCOMPILED = (
    "each message costs many times the CPU: install gcc and Python's headers (Debian: gcc python3-dev), then rumq: "
    "pip install --force-reinstall --no-cache-dir; in a clone pip install -e ."
)
HOLD_SECONDS = 30.0  # a killed broker may need a moment to exit, as long as a sync of its disk takes


def run(
    settings: Settings, read: Callable[[], Settings], sources: list[str], begin: Callable[[], None]
) -> int:  # fmt: skip
    """Serve until SIGTERM or SIGINT; returns the exit status. read: returns the current settings

    sources: command line flags for another process with the same settings
    begin: called once the data directory is this process's own and the settings are checked

    raises: DataDirectoryError if the data directory cannot be used, RumqError if no address can be bound
    """
    started = time.monotonic()
    # Until there is somebody to read the settings again: one that comes meanwhile is not lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    setup_events(settings.events.format, settings.events.level)
    data = os.path.abspath(settings.data.dir)
    count = settings.shards.count
    tell("broker.starting", version=VERSION, kernels=kernels(), pid=os.getpid(), data=data, shards=count)
    if (found := kernels()) != COMPILED:
        tell("kernels.plain", kernels=found, why=UNCOMPILED)
    if stale := stale_modules():
        tell("modules.stale", modules=stale, why=f"the sources were edited since, what was compiled runs: {repair()}")
    lock = taken(settings, data)
    restored = take_restored(data)
    for name in missing_partitions(RealFiles(), data, STATE_STREAM):
        tell("log.missing", path=f"{data}/{name}", why=lost_content(name))
    specs = streams(settings, data)
    tell("disk.bounds", **bounds(settings, data))
    check_files(settings)  # before anything is opened
    begin()
    doorways = open_listening_sockets(settings, file_of(sources))
    try:
        generation = resharded(
            data, lock, specs, internal_stream(settings), count, in_cluster=bool(settings.cluster.name)
        )
    except (OSError, StoreError) as fault:
        raise DataDirectoryError(settings.data.dir, getattr(fault, "problem", str(fault))) from fault
    place = ShardEnvironment(data, lock, doorways, specs, generation, started, sources, count=count, restored=restored)
    if settings.cluster.name:
        from rumq.process.node.node_process import run_node  # one node alone needs none of it

        return run_node(settings, read, place)
    if count == 1:
        return serve_shard(settings, place, read)
    return supervise(settings, place, read)


def taken(settings: Settings, data: str) -> int:
    """The lock of the data directory, which is checked and has its secret. raises: DataDirectoryError"""
    try:
        lock = held(data)
    except StoreError as fault:
        raise DataDirectoryError(settings.data.dir, fault.problem) from fault
    if problem := exposed(data):
        tell("data.exposed", path=data, why=problem)
    try:
        make_secret(data)
    except OSError as fault:
        raise DataDirectoryError(settings.data.dir, f"{fault.filename}: {fault.strerror}") from fault
    return lock


def supervise(settings: Settings, place: ShardEnvironment, read: Callable[[], Settings]) -> int:
    """Run several shards; returns the exit status. place: of any shard"""
    count, doorways = place.count, place.doorways
    doors = make_shard_sockets(count)
    latest = LatestSettings(settings, read, doorways, SocketOffers(doors, doorways.next_number))

    def shard(index: int, ready: int) -> int:
        now = latest.settings
        specs = list(map(reloaded, place.streams, now.stream))
        try:
            return serve_shard(now, replace(place, streams=specs, index=index, doors=doors, ready=ready), read)
        except RumqError as fault:
            return report_error(fault)

    host, port = doorways.sockets[0].address
    ready = partial(tell, "broker.ready", host=host, port=port, page=page_address(settings))
    supervisor = Supervisor(
        count, shard, event=tell, all_ready=ready,
        reread=latest.reread, watchdog_seconds=watchdog_seconds(os.getpid()),
        flush=EventSender(RING, place.data, "supervisor").flush if settings.gateway.port else lambda: False,
    )  # fmt: skip
    status = supervisor.run(place.started)
    tell("broker.stopped", seconds=round(time.monotonic() - place.started, 3), exit_status=status)
    return status


def file_of(sources: list[str]) -> str:
    """The file that settings are read from; empty where there is none."""
    named = dict(zip(sources[::2], sources[1::2], strict=False))
    return named.get("--config") or named.get("--mosquitto-conf", "")


def report_error(fault: RumqError) -> int:
    """Report an error; returns its exit status."""
    for line in str(fault).splitlines():
        print(f"rumqd: {line}", file=sys.stderr)
    return DATA_IN_USE if isinstance(fault, DataDirectoryError) else FAILED


def held(data: str) -> int:
    """The lock of the data directory. raises: StoreError"""
    try:
        return lock_of(data)
    except OSError as fault:
        raise NotWritable(data, at_start(fault)) from fault


def lock_of(data: str) -> int:
    files = RealFiles()
    until = time.monotonic() + HOLD_SECONDS
    while True:
        try:
            lock = hold(files, data, f"pid {os.getpid()}\n")
            break
        except DirectoryInUse:
            if holder_lives(data) or time.monotonic() > until:
                raise
            time.sleep(0.01)
    check_format(files, data)
    return lock


def holder_lives(data: str) -> bool:
    """Whether the process in LOCK exists; its shards may outlive it briefly."""
    try:
        with open(f"{data}/LOCK") as file:
            os.kill(int(file.read().split()[1]), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError, IndexError):
        return True
    return True
