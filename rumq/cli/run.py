"""Build the broker from its settings, run it, and stop it in order. The one place that wires everything.

Knows no rule of its own: what a setting means is the part's that takes it."""

from __future__ import annotations

import ctypes
import gc
import ipaddress
import os
import signal
import sys
import time

import trio

from commitlog import RealFiles, Store, StoreError, StreamSpec, open_store
from rumq.cli.version import VERSION, kernels
from rumq.config import Settings
from rumq.errors import DataDirectoryError, RumqError
from rumq.events import setup_events
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import matches
from rumq.net.descriptors import raise_limit, room_for_connections
from rumq.net.listener import Listener, open_sockets
from rumq.net.pump import Pump
from rumq.session.limits import Limits
from rumq.shards.asking import answer
from rumq.shards.counter import serve
from rumq.shards.driver import Driver
from rumq.shards.loop import Loop
from rumq.shards.restoring import restore
from rumq.shards.scrubbing import Scrubbing
from rumq.shards.telling import tell
from rumq.shards.worker import Worker

STOP_SECONDS_MAX = 30.0
SWITCH_SECONDS = 0.0005
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
STATE_STREAM = "_state"
STATE_SEGMENT_BYTES = 16 << 20


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status.

    raises: DataDirectoryError when the data directory cannot be used, RumqError when no address can be bound
    """
    started = time.monotonic()
    keep_memory()
    setup_events(settings.events.format, settings.events.level)
    data = os.path.abspath(settings.data.dir)
    tell("broker.starting", version=VERSION, kernels=kernels(), pid=os.getpid(), data=data)
    store = opened(settings, data)
    driver = Driver(
        store, limits(settings), event=tell, linger_seconds=settings.log.linger_ms / 1000,
        pending_bytes_max=settings.log.pending_bytes_max,
        backlog_records_max=settings.mqtt.backlog_records_max, free_bytes_min=settings.log.free_bytes_min,
        retain_for_sessions_bytes_max=settings.log.retain_for_sessions_bytes_max,
    )  # fmt: skip
    pump = Pump(driver, coalesce_seconds=settings.listener.coalesce_us / 1_000_000)
    driver.pump = pump
    for worker in (driver.writer, driver.reader):
        pump.watch(worker.fd, worker.finish)
    restore(driver)
    scrubber = Worker("rumq-scrub")
    pump.watch(scrubber.fd, scrubber.finish)
    Scrubbing(
        RealFiles(),
        store.partitions,
        scrubber,
        settings.log.scrub_bytes_per_second,
        event=tell,
        later=driver.later,
    ).begin()
    listeners = bound(settings, pump, driver, connections_max(settings, len(store.partitions)))
    # What is here now stays: the collector need not look at it again, and cycles are rare on the hot path.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    # The threads that wait for disks need the interpreter for moments only; the loop takes it back soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    loop = Loop(pump, driver.seconds_to_next_deadline)

    async def main() -> None:
        async with trio.open_nursery() as services:
            services.start_soon(serve, data, lambda question: answer(driver, question))
            await until_stopped()
            services.cancel_scope.cancel()
        await stop(driver, pump, listeners)

    async def until_stopped() -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            host, port = listeners[0].address
            tell("broker.ready", host=host, port=port, seconds=round(time.monotonic() - started, 3))
            async for number in signals:
                tell("broker.stopping", signal=signal.Signals(number).name, connections=len(pump.connections))
                break

    loop.run(main)
    driver.writer.stop()
    driver.reader.stop()
    scrubber.stop()
    pump.close()
    store.close()
    tell("broker.stopped", seconds=round(time.monotonic() - started, 3), exit_status=0)
    return 0


def keep_memory() -> None:
    """Have the C library keep what is freed: a batch's buffers come and go with every turn, and each fresh page
    costs more than the copy into it (mallopt(3)). Other C libraries than glibc are left as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 28)
        mallopt(M_TRIM_THRESHOLD, 1 << 28)


def opened(settings: Settings, data: str) -> Store:
    """The store, recovered; what was found is told."""
    try:
        store = open_store(
            RealFiles(), data, streams(settings), matches=matches, now_us=time.time_ns() // 1000,
            hot_bytes_max=settings.log.hot_bytes_max, boot_id=boot_id(), holder=f"pid {os.getpid()}\n",
            internal=internal_stream(settings),
        )  # fmt: skip
    except StoreError as fault:
        raise DataDirectoryError(settings.data.dir, fault.problem) from fault
    partitions, recovered = list(store.partitions), list(store.recovered)
    if store.internal is not None and store.internal_recovered is not None:
        partitions.append(store.internal)
        recovered.append(store.internal_recovered)
    for partition, found in zip(partitions, recovered, strict=True):
        where = {"stream": partition.stream, "partition": partition.number}
        if not found.clean:
            tell("log.recovered", **where, next_lsn=partition.next_lsn, torn_bytes=found.torn_bytes)
        for gap in found.gaps:
            tell("log.gap", **where, first_lsn=gap.base_lsn, next_lsn=gap.next_lsn, why=gap.why)
        for path in found.unreadable:
            tell("log.gap", **where, why=path)
    return store


def streams(settings: Settings) -> list[StreamSpec]:
    """The streams as the log takes them; the last one catches all."""
    return [
        StreamSpec(
            s.name, s.filters, s.partitions, s.durability, s.segment_bytes_max, s.segment_seconds_max,
            s.retention_bytes_max or None, s.retention_seconds_max or None, s.topics_max,
        )
        for s in settings.stream
    ]  # fmt: skip


def internal_stream(settings: Settings) -> StreamSpec:
    """Where sessions are kept: as safe as the safest of the streams that they read."""
    durable = any(s.durability == "disk" for s in settings.stream)
    return StreamSpec(
        STATE_STREAM, (), 1, "disk" if durable else "process", STATE_SEGMENT_BYTES, 86_400, None, None
    )


def limits(settings: Settings) -> Limits:
    m = settings.mqtt
    return Limits(
        packet_bytes_max=m.packet_bytes_max,
        topic_bytes_max=m.topic_bytes_max,
        topic_levels_max=m.topic_levels_max,
        receive_maximum=m.receive_maximum,
        inflight_max=m.inflight_max,
        keep_alive_seconds_max=m.keep_alive_seconds_max,
        topic_alias_maximum=m.topic_alias_maximum,
        topic_alias_out_maximum=m.topic_alias_out_maximum,
        session_expiry_seconds_max=m.session_expiry_seconds_max,
        subscriptions_max=m.subscriptions_max,
        retain_available=m.retain_available,
        wildcard_available=m.wildcard_available,
        shared_available=m.shared_available,
        subscription_identifiers_available=m.subscription_identifiers_available,
        maximum_qos=m.maximum_qos,
        client_id_bytes_max=m.client_id_bytes_max,
        connect_seconds_max=settings.listener.connect_seconds_max,
        outbox_bytes_max=m.outbox_bytes_max,
        durability=tuple((s.name, s.durability) for s in settings.stream),
    )


def connections_max(settings: Settings, partitions: int) -> int:
    """As many as the settings allow, and as there are descriptors for; told if these are fewer."""
    wanted = settings.listener.connections_max
    limit = raise_limit()
    room = room_for_connections(limit, partitions + 1)
    if room < wanted:
        tell("listener.limited", connections_max=room, wanted=wanted, descriptors=limit)
    return min(wanted, room)


def bound(settings: Settings, pump: Pump, driver: Driver, connections: int) -> list[Listener]:
    where = settings.listener
    try:
        sockets = open_sockets(where.host, where.port, where.backlog)
    except OSError as fault:
        raise RumqError(
            f"cannot listen on {where.host}:{where.port}: {fault.strerror or fault}; "
            "give another --port or --host, or stop what uses it"
        ) from fault
    listeners = []
    for sock in sockets:
        listener = Listener(
            pump, sock, connections_max=connections, outbox_bytes_max=settings.mqtt.outbox_bytes_max,
            welcome=driver.welcome, event=tell, later=driver.later,
        )  # fmt: skip
        host, port = listener.address
        tell("listener.bound", host=host, port=port)
        if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
            tell(
                "listener.open", host=host, port=port,
                why="anybody who reaches this address may publish and subscribe: keep a firewall before it, "
                "or listen on localhost",
            )  # fmt: skip
        listeners.append(listener)
    return listeners


def boot_id() -> bytes:
    """Which run of the machine this is: what a kill survives, a power loss may not."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        return bytes(16)


async def stop(driver: Driver, pump: Pump, listeners: list[Listener]) -> None:
    """No new connections; every client is told; what they sent is written."""
    for listener in listeners:
        listener.close()
    for connection in list(pump.connections.values()):
        connection.link.dismiss(Reason.SERVER_SHUTTING_DOWN, "the broker is stopping")
    with trio.move_on_after(STOP_SECONDS_MAX):
        driver.drain = True
        while pump.connections or not driver.writing.idle():
            await trio.sleep(0.005)
