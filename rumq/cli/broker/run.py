"""`rumqd run`: hold the data directory, bind the addresses, and run one shard here or several under a supervisor.

Each setting is interpreted by the part that it configures."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial

from commitlog import DirectoryInUse, NotWritable, RealFiles, StoreError
from commitlog.backup import take_restored
from commitlog.inventory import missing_partitions
from commitlog.os_errors import at_start
from commitlog.store import check_format, hold
from rumq.cli.broker.latest_settings import LatestSettings, check_files
from rumq.cli.broker.resharding import resharded
from rumq.cli.broker.shard import serve_shard
from rumq.cli.broker.shard_store import Place, internal_stream
from rumq.cli.data.exposure import exposed
from rumq.cli.data.missing_partition import STATE_STREAM, lost_content
from rumq.cli.listeners.offered_sockets import SocketOffers
from rumq.cli.wiring.broker_secret import make_secret
from rumq.cli.wiring.disk_bounds import bounds
from rumq.cli.wiring.listening_sockets import open_listening_sockets
from rumq.cli.wiring.streams import reloaded, streams
from rumq.config import Settings
from rumq.errors import DataDirectoryError, RumqError
from rumq.events import RING, setup_events
from rumq.shards.processes.event_sender import EventSender
from rumq.shards.processes.fd_passing import make_shard_sockets
from rumq.shards.processes.supervisor import Supervisor
from rumq.shards.processes.watchdog import watchdog_seconds
from rumq.shards.stats.event_log import tell
from rumq.version import COMPILED, VERSION, kernels

FAILED, DATA_IN_USE = 1, 3  # exit statuses, as of `rumq.cli.main`
UNCOMPILED = (
    "each message costs many times the CPU: install gcc and Python's headers (Debian: gcc python3-dev), then rumq: "
    "pip install --force-reinstall --no-cache-dir; in a clone pip install -e ."
)
HOLD_SECONDS = 30.0  # a killed broker may need a moment to exit, as long as a sync of its disk takes


def run(settings: Settings, read: Callable[[], Settings], sources: list[str]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. read: returns the current settings

    sources: command line flags for another process with the same settings

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
    restored = take_restored(data)
    for name in missing_partitions(RealFiles(), data, STATE_STREAM):
        tell("log.missing", path=f"{data}/{name}", why=lost_content(name))
    specs = streams(settings, data)
    tell("disk.bounds", **bounds(settings, data))
    check_files(settings)  # before anything is opened
    doorways = open_listening_sockets(settings, file_of(sources))
    try:
        generation = resharded(
            data, lock, specs, internal_stream(settings), count, in_cluster=bool(settings.cluster.name)
        )
    except (OSError, StoreError) as fault:
        raise DataDirectoryError(settings.data.dir, getattr(fault, "problem", str(fault))) from fault
    if settings.cluster.name:
        from rumq.cli.node.run import run_node  # one node alone needs none of it

        place = Place(data, lock, doorways, specs, generation, started, sources, 0, count, restored=restored)
        return run_node(settings, read, place)
    if count == 1:
        return serve_shard(
            settings,
            Place(data, lock, doorways, specs, generation, started, sources, restored=restored),
            read,
        )
    doors = make_shard_sockets(count)
    latest = LatestSettings(settings, read, doorways, SocketOffers(doors, doorways.next_number))

    def shard(index: int, ready: int) -> int:
        now = latest.settings
        place = Place(
            data, lock, doorways, list(map(reloaded, specs, now.stream)), generation, started, sources, index, count,
            doors, ready, restored,
        )  # fmt: skip
        try:
            return serve_shard(now, place, read)
        except RumqError as fault:
            return told(fault)

    host, port = doorways.sockets[0].address
    supervisor = Supervisor(
        count, shard, event=tell, all_ready=partial(tell, "broker.ready", host=host, port=port),
        reread=latest.reread, watchdog_seconds=watchdog_seconds(os.getpid()),
        flush=EventSender(RING, data, "supervisor").flush if settings.gateway.port else lambda: False,
    )  # fmt: skip
    status = supervisor.run(started)
    tell("broker.stopped", seconds=round(time.monotonic() - started, 3), exit_status=status)
    return status


def file_of(sources: list[str]) -> str:
    """The file that settings are read from; empty where there is none."""
    named = dict(zip(sources[::2], sources[1::2], strict=False))
    return named.get("--config") or named.get("--mosquitto-conf", "")


def told(fault: RumqError) -> int:
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
