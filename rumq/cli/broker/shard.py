"""Build one shard from the settings, run it, and stop it in order. The one place that wires everything.

With several shards this runs in a process of its own; with one, in the process of `rumqd run`."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import trio

from commitlog import RealFiles, Store, StoreError, StreamSpec, open_store
from commitlog.inventory import write_inventory
from commitlog.space import segment_bytes
from commitlog.volatile import VolatilePartition
from rumq.auth.identity import Certificate
from rumq.cli.broker.reload import Reload
from rumq.cli.data.missing_partition import STATE_STREAM
from rumq.cli.wiring.disk_bounds import reserve, space_of
from rumq.cli.wiring.limits import limit_pending_logins, limits
from rumq.cli.wiring.listener_policies import ListenerPolicies
from rumq.cli.wiring.listening_sockets import ListeningSocket
from rumq.cli.wiring.sidecars import sidecars
from rumq.cli.wiring.streams import GENERATION
from rumq.cli.wiring.transports import transports_of
from rumq.config import Settings
from rumq.errors import DataDirectoryError
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import matches
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT, KNOWN
from rumq.net.fd_limit import raise_limit, room_for_connections
from rumq.net.lingering_close import LingeringClose
from rumq.net.listener import SPARE, Listener
from rumq.net.pump import Pump
from rumq.net.transport_handshake import TransportHandshakes
from rumq.net.transports import Transports, continue_handed_over
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.session.handshake.handshake import Handshake
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.processes.fd_passing import FdPassing, ShardSocket
from rumq.shards.processes.service_notification import READY, STOPPING, notify, reloading
from rumq.shards.processes.sidecars import Sidecars
from rumq.shards.processes.supervisor import HAS_RELOADED, IS_READY
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.retention.scrubber import Scrubber
from rumq.shards.stats.admin_queries import answer
from rumq.shards.stats.admin_socket import serve
from rumq.shards.stats.event_log import tell
from rumq.shards.stats.sys_publisher import SysPublisher
from rumq.shards.turn.loop import Loop
from rumq.shards.turn.turn import Driver
from rumq.shards.write_path.worker_threads import Worker
from rumq.version import VERSION

STOP_SECONDS_MAX = 30.0
LINGER_SECONDS_MAX = 0.25  # at a stop, for clients that do not close their side
EARLY_SECONDS = 0.005
SWITCH_SECONDS = 0.0001
YOUNG_OBJECTS_MAX, NEVER = 20_000, 2**31 - 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

STATE_SEGMENT_BYTES = 16 << 20
STATUS = StreamSpec("_sys", (), 1, "memory")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shard runs. started: when the broker was, monotonic; ready: a pipe to tell of it, -1 for the only one"""

    data: str
    lock: int
    doorways: list[ListeningSocket]
    streams: list[StreamSpec]
    generation: int  # of the journals
    started: float
    sources: list[str]  # the command line that gives another process the same settings
    index: int = 0
    count: int = 1
    doors: list[ShardSocket] | None = None
    ready: int = -1
    restored: dict[str, int] = field(default_factory=dict)  # `commitlog.backup.take_restored`


def serve_shard(settings: Settings, place: Place, read: Callable[[], Settings]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. read: gives the settings as they are now, for SIGHUP

    raises: DataDirectoryError"""
    keep_memory()
    entrances = ListenerPolicies(settings).policies
    transports = transports_of(settings)
    store = opened(settings, place)
    pump: Pump
    driver = Driver(
        store, limits(settings), event=tell, linger_seconds=settings.log.linger_ms / 1000,
        pending_bytes_max=settings.log.pending_bytes_max,
        backlog_records_max=settings.mqtt.backlog_records_max, free_bytes_min=reserve(settings, place.data),
        free_percent_min=settings.log.free_percent_min, wanted_free_percent_min=settings.log.wanted_free_percent_min,
        retain_for_sessions_bytes_max=settings.log.retain_for_sessions_bytes_max,
        exports=ExportPositions(
            RealFiles(), [s.name for s in settings.stream if s.export_to], settings.log.retain_for_export_bytes_max
        ),
        index=place.index, count=place.count,
        doors=partial(FdPassing, place.doors, place.index) if place.doors is not None else None,
    )  # fmt: skip
    pump = Pump(driver, coalesce_seconds=settings.listener.coalesce_us / 1_000_000)
    driver.pump, driver.entrances = pump, entrances
    pump.lingering = LingeringClose(pump, later=driver.later)
    if settings.sys.interval_seconds:
        driver.announcing = SysPublisher(
            driver, store.partitions[-1], interval_seconds=settings.sys.interval_seconds,
            version=f"rumq version {VERSION}", started=place.started,
        )  # fmt: skip
    driver.checking.guesses.seconds_max = settings.auth.guess_seconds_max
    for worker in (driver.writer, driver.reader):
        pump.watch(worker.fd, worker.finish)
    scrubber = Worker("rumq-scrub")
    pump.watch(scrubber.fd, scrubber.finish)
    driver.startup.read_journal(driver.tell)
    if driver.doors is None:
        driver.startup.advance()
    else:
        take_connections(driver, pump, entrances, settings.mqtt.outbox_bytes_max)
        pump.watch(driver.doors.fd, driver.doors.hear)
        driver.peers.dial()
    listeners: list[Listener] = []
    if driver.doors is None:
        freeze()
    # The threads that wait for disks need the interpreter for moments only; the loop takes it back soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    loop = Loop(pump, driver.seconds_to_next_deadline)
    alone = place.ready < 0
    settings_reload = Reload(settings, read, entrances, transports)
    counter = "ask.sock" if place.index == 0 else f"ask-{place.index}.sock"

    async def main() -> None:
        async with trio.open_nursery() as services:
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
                if driver.doors is not None:
                    services.start_soon(join, driver, begin)
                else:
                    begin()
                services.start_soon(
                    serve, place.data, lambda question: answer(driver, question), counter, driver.failed
                )
                async for number in signals:
                    if number == signal.SIGHUP:
                        if alone:
                            notify(reloading())
                        if settings_reload.reload(driver):
                            beside.reload()
                        announce(HAS_RELOADED)
                        continue
                    if alone:
                        notify(STOPPING)
                        tell(
                            "broker.stopping",
                            signal=signal.Signals(number).name,
                            connections=len(pump.connections),
                        )
                    break
            services.cancel_scope.cancel()
        await stop(driver, pump, listeners)

    def begin() -> None:
        """Clients may come."""
        listeners.extend(listening(settings, place, pump, driver, entrances, transports))
        Scrubber(
            RealFiles(), store.own, scrubber, settings.log.scrub_bytes_per_second, event=tell, later=driver.later
        ).begin()  # fmt: skip
        if driver.announcing is not None:
            driver.announcing.begin()
        if place.index == 0:
            take_stock(driver, place)
            addresses = [
                f"{host}:{port}" if port else str(host) for host, port in (each.address for each in listeners)
            ]
            driver.about = {"version": VERSION, "shards": place.count, "listeners": addresses}
        driver.consumers.lag_records_max = settings.events.lag_records_max
        driver.consumers.lag_seconds_max = settings.events.lag_seconds_max
        driver.consumers.begin()
        driver.topic_rates.begin()
        beside.start()
        announce(IS_READY)
        if not alone:
            return
        host, port = listeners[0].address
        seconds = round(time.monotonic() - place.started, 3)
        tell("broker.ready", host=host, port=port, seconds=seconds)

    def announce(what: bytes) -> None:
        """Clients are served with the settings in force: said to the supervisor, or to who started this process."""
        if alone:
            notify(READY)
        else:
            os.write(place.ready, what)

    # One shard has what runs beside: it lives and dies with it, as with a broker of one process.
    beside = Sidecars(sidecars(settings, place.data, place.sources) if place.index == 0 else [])
    loop.run(main)
    beside.stop()
    driver.writer.stop()
    driver.reader.stop()
    scrubber.stop()
    driver.checking.stop()
    pump.close()
    store.close()
    tell("broker.stop_phase", phase="log sealed", clients=0)
    if place.count == 1:
        tell("broker.stopped", seconds=round(time.monotonic() - place.started, 3), exit_status=0)
    return 0


def take_stock(driver: Driver, place: Place) -> None:
    """All partitions are open: what is to be there at the next start is written down."""
    names = [f"{spec.name}/g{GENERATION}/p{n}" for spec in place.streams for n in range(spec.partitions)]
    names += [f"{STATE_STREAM}/g{place.generation}/p{number}" for number in range(place.count)]
    try:
        write_inventory(RealFiles(), place.data, names)
    except OSError as fault:
        tell("log.failed", stream=STATE_STREAM, partition=0, why=f"PARTITIONS was not written: {fault}")


async def join(driver: Driver, begin: Callable[[], None]) -> None:
    """Meet the other shards, restore what an earlier run left here and in their logs, and begin."""
    while not driver.startup.advance():
        await trio.sleep(0.001)
    freeze()
    begin()


def freeze() -> None:
    """What is here now stays: the collector need not look at it again, and cycles are rare on the hot path.

    By itself it looks at young objects only, so that no turn waits long for it: at all others the driver has it look,
    once so many connections have ended that their cycles may have added up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, NEVER, NEVER)


def take_connections(
    driver: Driver, pump: Pump, entrances: list[ListenerPolicy], outbox_bytes_max: int
) -> None:
    """Take connections that other shards hand over, with what they have read of them."""

    early: list[tuple[str, socket.socket, str, bytes, int]] = []  # they wait until their sessions are there

    def take(kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
        if not driver.is_restored:
            if not early:
                driver.later(EARLY_SECONDS, take_early)
            early.append((kind, sock, peer, data, listener))
            return
        entrance = entrances[listener]
        continue_handed_over(
            pump, kind, sock, peer, data, outbox_bytes_max,
            lambda connection: welcome(driver, connection, entrance),
        )  # fmt: skip

    def take_early() -> None:
        waiting = early[:]
        early.clear()
        for each in waiting:
            take(*each)

    assert driver.doors is not None
    for kind in (CLIENT, KNOWN):
        driver.doors.takers[kind] = partial(take, kind)


def welcome(driver: Driver, connection: Connection, entrance: ListenerPolicy) -> Handshake:
    """The handler of a new connection, which knows the certificate that TLS has checked."""
    handshake = driver.welcome(connection, entrance)
    shown = connection.certificate
    if shown is not None:
        names = (*shown.dns, *shown.email, *shown.uri)
        handshake.client.certificate = Certificate(shown.common_name or "", shown.subject, names)
    return handshake


def keep_memory() -> None:
    """Have the C library keep what is freed: a batch's buffers come and go with every turn, and each fresh page
    costs more than the copy into it (mallopt(3)). Other C libraries than glibc are left as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 28)
        mallopt(M_TRIM_THRESHOLD, 1 << 28)


def opened(settings: Settings, place: Place) -> Store:
    """The shard's part of the store, recovered; what was found is told."""

    def volatile(index: int) -> VolatilePartition | RemotePartition:
        if place.index:
            return RemotePartition(STATUS, index, 0, GENERATION, 0)
        return VolatilePartition(STATUS, index, now_us=time.time_ns() // 1000)

    def elsewhere(spec: StreamSpec, index: int, number: int) -> RemotePartition | None:
        owner = index % place.count
        return None if owner == place.index else RemotePartition(spec, index, number, GENERATION, owner)

    try:
        store = open_store(
            RealFiles(), place.data, place.streams, matches=matches, now_us=time.time_ns() // 1000,
            hot_bytes_max=settings.log.hot_bytes_max, boot_id=boot_id(), lock=place.lock,
            internal=internal_stream(settings), internal_number=place.index,
            internal_generation=place.generation, elsewhere=elsewhere,
            volatile=volatile if settings.sys.interval_seconds else None,
        )  # fmt: skip
    except StoreError as fault:
        raise DataDirectoryError(settings.data.dir, fault.problem) from fault
    partitions, recovered = list(store.own), list(store.recovered)
    if store.internal is not None and store.internal_recovered is not None:
        partitions.append(store.internal)
        recovered.append(store.internal_recovered)
    for partition, found in zip(partitions, recovered, strict=True):
        where = {"stream": partition.stream, "partition": partition.number}
        if not found.clean:
            ended = {"next_lsn": partition.next_lsn, "torn_bytes": found.torn_bytes}
            name = partition.directory.removeprefix(f"{place.data}/")
            is_copy = place.restored.get(name) == partition.next_lsn
            tell("log.restored" if is_copy else "log.recovered", **where, **ended)
        for gap in found.gaps:
            tell("log.gap", **where, first_lsn=gap.base_lsn, next_lsn=gap.next_lsn, why=gap.why)
        for gap in found.short:
            tell("log.gap", **where, first_lsn=gap.base_lsn, next_lsn=gap.next_lsn, why=gap.why)
        for path in found.unreadable:
            tell("log.gap", **where, why=path)
    return store


def internal_stream(settings: Settings) -> StreamSpec:
    """Where sessions are kept: as safe as the safest of the streams that they read."""
    durable = any(s.durability == "disk" for s in settings.stream)
    return StreamSpec(
        STATE_STREAM, (), 1, "disk" if durable else "process",
        segment_bytes(STATE_SEGMENT_BYTES, space_of(settings.data.dir).total_bytes), 86_400, None, None
    )  # fmt: skip


def connections_max(settings: Settings, partitions: int) -> list[int]:
    """Of each listener as many as the settings allow, and as there are descriptors for; told if these are fewer."""
    limit = raise_limit()
    room = max(1, room_for_connections(limit, partitions + 1) - 2 * SPARE)
    wanted = max(each.connections_max for each in settings.listeners)
    if room < wanted:
        tell("listener.limited", connections_max=room, wanted=wanted, descriptors=limit)
    return [min(each.connections_max, room) for each in settings.listeners]


def listening(
    settings: Settings,
    place: Place,
    pump: Pump,
    driver: Driver,
    entrances: list[ListenerPolicy],
    transports: list[Transports],
) -> list[Listener]:
    """Accept from the broker's sockets, which all shards share."""
    connections = connections_max(settings, len(driver.store.own))
    driver.connections_max = dict(enumerate(connections))
    pump.pending_logins.on_shed = lambda holder, shed: driver.tell(
        "connection.shed", address=holder, shed=shed
    )
    limit_pending_logins(settings, pump.pending_logins)
    handshakes = TransportHandshakes(
        pump, later=driver.later, event=driver.tell, count_max=settings.listener.tls_handshakes_max
    )

    def listener(number: int, sock: socket.socket) -> Listener:
        return Listener(
            pump, sock, connections_max=connections[number], outbox_bytes_max=settings.mqtt.outbox_bytes_max,
            welcome=lambda connection: welcome(driver, connection, entrances[number]), event=driver.tell,
            later=driver.later, transports=transports[number], handshakes=handshakes,
        )  # fmt: skip

    return [listener(*doorway) for doorway in place.doorways]


def boot_id() -> bytes:
    """Which run of the machine this is: what a kill survives, a power loss may not."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        return bytes(16)


async def stop(driver: Driver, pump: Pump, listeners: list[Listener]) -> None:
    """In five phases, each told and each with its time limit; the last one, sealing, is the store's.

    No new connections; every client is told; what they sent is written, here and in other shards."""
    for listener in listeners:
        listener.close()
    tell("broker.stop_phase", phase="no new connections", clients=clients(pump))
    for connection in list(pump.connections.values()):
        if not connection.link.is_bus:
            connection.link.dismiss(Reason.SERVER_SHUTTING_DOWN, "the broker is stopping")
    driver.drain = True
    await phase("clients told", lambda: not clients(pump), pump)
    with trio.move_on_after(LINGER_SECONDS_MAX):
        # Who is still writing is to read why it ends: a process that exits resets its sockets.
        while pump.lingering:
            await trio.sleep(0.005)
    await phase("log written", driver.writing.idle, pump)
    driver.peers.drain()
    await phase("shards drained", lambda: driver.peers.are_drained and driver.writing.idle(), pump)
    driver.peers.close()
    for partition, size in driver.writing.unwritten():
        tell("log.unwritten", stream=partition.stream, partition=partition.number, bytes=size)


def clients(pump: Pump) -> int:
    """How many clients are connected."""
    return sum(not connection.link.is_bus for connection in pump.connections.values())


async def phase(name: str, is_over: Callable[[], bool], pump: Pump) -> None:
    """Wait for the end of one phase of a stop, not for ever."""
    with trio.move_on_after(STOP_SECONDS_MAX):
        while not is_over():
            await trio.sleep(0.005)
    tell("broker.stop_phase", phase=name, clients=clients(pump))
