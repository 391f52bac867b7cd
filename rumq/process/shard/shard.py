"""One shard as a process: built from the settings, run until a signal, shut down in order.

With several shards each has a process of its own; with one it is the process of `rumqd run`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from commitlog import RealFiles, Store
from rumq.admin.socket import kept_values
from rumq.admin.socket.admin_client import socket_name
from rumq.admin.socket.admin_socket import serve
from rumq.bridge.counts import FOLDER, read_states
from rumq.events.event_log import tell
from rumq.loop.loop import Loop
from rumq.net.lingering_close import LingeringClose
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import FdPassing
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.process.listeners.client_connections import take_handed_over
from rumq.process.listeners.limits import limits
from rumq.process.listeners.offered_sockets import LISTENER, OfferedSockets
from rumq.process.shard.process_tuning import freeze, keep_memory, yield_soon
from rumq.process.shard.reload import Reload
from rumq.process.shard.shard_listeners import ShardListeners
from rumq.process.shard.shard_store import ShardEnvironment, note_inventory, open_shard_store
from rumq.process.shard.shutdown import stop
from rumq.process.wiring.disk_bounds import reserve
from rumq.process.wiring.page_address import page_address
from rumq.process.wiring.sidecars import leader_sidecars, sidecars
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.settings.table import Settings
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import Shard, build_shard
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.retention.scrubber import Scrubber
from rumq.shards.stats.sys_publisher import SysStatus
from rumq.shards.write_path.worker_threads import Worker
from rumq.supervision.service_notification import READY, STOPPING, notify, reloading
from rumq.supervision.sidecars import Sidecar, Sidecars
from rumq.supervision.supervisor import HAS_RELOADED, IS_ALIVE, IS_READY
from rumq.supervision.watchdog import ALIVE, Heartbeat, watchdog_seconds
from rumq.version import VERSION

if TYPE_CHECKING:
    from rumq.process.shard.leader import Leader

STAGE_SECONDS = 0.001  # group commit lingers for 5 ms: a millisecond more of what nobody waits for is not noticed


def serve_shard(settings: Settings, place: ShardEnvironment, read: Callable[[], Settings]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. read: returns the current settings, for SIGHUP

    raises: DataDirectoryError"""
    keep_memory()
    offers = None
    if place.ready >= 0:  # another process binds
        offers = OfferedSockets(place.doorways.numbers, place.doorways.next_number)
    listeners = ShardListeners(settings, place.doorways, offers or place.doorways)
    policies = listeners.policies
    store = open_shard_store(settings, place)
    context, platform = context_of(settings, place, policies), platform_of(settings, place)
    leader, certificates = leader_of(settings, place)
    if leader is not None:
        context, platform = leader.context(context), leader.platform(platform)
    shard = build_shard(store, context, platform)
    certificates.insert(0, listeners.certificate_watch())
    process = ShardProcess(settings, place, shard, listeners, leader, certificates)
    shard.pump.lingering = LingeringClose(shard.pump, later=shard.timers.later)
    shard.clients.auth_pool.guesses.seconds_max = settings.auth.guess_seconds_max
    shard.operation.startup.read_journal(shard.events.tell)
    if shard.cluster.fd_passing is None:
        shard.operation.startup.advance()
        freeze()
    else:
        outbox_bytes_max = settings.mqtt.outbox_bytes_max
        moved = partial(leader.take_moved, shard, outbox_bytes_max) if leader is not None else None
        take = take_handed_over(shard, policies, outbox_bytes_max, offers or (), moved)
        if offers is not None:
            shard.cluster.fd_passing.takers[LISTENER] = offers.take
        shard.pump.watch(shard.cluster.fd_passing.fd, shard.cluster.fd_passing.hear)
        if leader is not None:
            leader.begin(shard, policies, take)
        when_open(shard, shard.cluster.peers.dial)
    yield_soon()
    loop = Loop(shard.pump, shard.turn)
    loop.run(partial(process.run, Reload(settings, read, listeners)))
    process.end()
    return 0


def leader_of(settings: Settings, place: ShardEnvironment) -> tuple[Leader | None, list[CertificateWatch]]:
    """What leads the shard, in a cluster, and what looks after the certificates of its connections."""
    if place.cluster is None:
        return None, []
    from rumq.process.certificates.node_certificates import node_tls, watched_node_tls
    from rumq.process.shard.leader import Leader  # a broker alone needs nothing of a cluster

    tls = node_tls(settings)
    watch = watched_node_tls(settings, tls)
    return Leader(place, place.cluster, tls), [watch] if watch is not None else []


def context_of(settings: Settings, place: ShardEnvironment, policies: Mapping[int, ListenerPolicy]) -> ShardContext:
    log, interval_seconds = settings.log, settings.sys.interval_seconds
    return ShardContext(
        place.index, place.count, limits(settings), policies.values(),
        linger_seconds=log.linger_ms / 1000,
        pending_bytes_max=log.pending_bytes_max,
        backlog_records_max=settings.mqtt.backlog_records_max,
        free_bytes_min=reserve(settings, place.data),
        free_percent_min=log.free_percent_min,
        wanted_free_percent_min=log.wanted_free_percent_min,
        retain_for_sessions_bytes_max=log.retain_for_sessions_bytes_max,
        pack_bytes_per_second=log.pack_bytes_per_second,
        exports=ExportPositions(
            RealFiles(), [s.name for s in settings.stream if s.export_to], log.retain_for_export_bytes_max
        ),
        status=status_of(settings, place) if interval_seconds else None,
        trace_sample_every=settings.trace.sample_every,
        traces_per_second_max=settings.trace.traces_per_second_max,
    )  # fmt: skip


def status_of(settings: Settings, place: ShardEnvironment) -> SysStatus:
    folder = Path(place.data, FOLDER)

    def bridges() -> dict[str, bool]:
        return read_states(folder, time.time()) if settings.bridge else {}

    return SysStatus(settings.sys.interval_seconds, f"rumq version {VERSION}", place.started, bridges)


def platform_of(settings: Settings, place: ShardEnvironment) -> Platform:
    coalesce_seconds = settings.listener.coalesce_us / 1_000_000
    return Platform(
        tell,
        partial(Pump, coalesce_seconds=coalesce_seconds),
        fd_passing=partial(FdPassing, place.doors, place.index) if place.doors is not None else None,
        stage_seconds=STAGE_SECONDS,
    )


class ShardProcess:
    """A built shard with its services: listeners, the scrubber, the admin socket, sidecars, signals."""

    def __init__(
        self, settings: Settings, place: ShardEnvironment, shard: Shard, listeners: ShardListeners,
        leader: Leader | None, certificates: list[CertificateWatch],
    ) -> None:  # fmt: skip
        """certificates: the listeners' first, then those of connections between nodes"""
        self._settings, self._place, self._shard, self._leader = settings, place, shard, leader
        self._listeners = listeners
        self._certificates = certificates
        self._is_only_one = place.ready < 0
        self._scrubber = Worker("rumq-scrub", shard.events.failed)
        shard.pump.watch(self._scrubber.fd, self._scrubber.finish)
        # One shard owns the sidecars, which start and end with it, as in a broker of one process.
        self._sidecars = Sidecars(sidecars_of(settings, place))

    async def run(self, settings_reload: Reload) -> None:
        """Serve until a stop signal."""
        shard, index = self._shard, self._place.index
        async with trio.open_nursery() as answering:
            async with trio.open_nursery() as services:
                with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
                    if hung_up():
                        self._reload(settings_reload)  # before clients come
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
                    name = socket_name(index)
                    # Before it is said to be ready, for then it can be asked; and as long as it stops.
                    await answering.start(
                        serve, self._place.data, shard.operation.admin.answer, name, shard.events.failed
                    )
                    if self._leader is not None and index == 0:  # Kafka's groups are kept by its leader
                        await answering.start(
                            partial(serve, bytes_max=kept_values.LINE_BYTES_MAX),
                            self._place.data, shard.operation.kept.answer, kept_values.SOCKET_NAME, shard.events.failed,
                        )  # fmt: skip
                    await self._serve(settings_reload, services, signals)
                services.cancel_scope.cancel()
            if self._leader is not None:
                await self._leave_cluster(self._leader)
            await stop(shard, self._listeners.open)
            answering.cancel_scope.cancel()

    async def _serve(self, settings_reload: Reload, services: trio.Nursery, signals: AsyncIterator[int]) -> None:
        if self._shard.cluster.fd_passing is None and self._shard.writing.replication is None:
            self._begin()
        else:
            services.start_soon(self._join)
        for each in self._certificates:
            services.start_soon(each.run)
        async for number in signals:
            if number != signal.SIGHUP:
                self._tell_stop(number)
                return
            if self._is_only_one:
                notify(reloading())
            if self._reload(settings_reload):
                self._sidecars.reload()
            self._announce(HAS_RELOADED)

    def _reload(self, settings_reload: Reload) -> bool:
        if self._shard.cluster.fd_passing is not None:
            self._shard.cluster.fd_passing.hear()  # sockets of new listeners were sent before the signal
        done = settings_reload.reload(self._shard)
        if done:
            listeners, *between_nodes = self._certificates
            listeners.note()  # the reload has read them
            for each in between_nodes:
                each.read_again()
        self._announce_addresses()
        return done

    def _announce_addresses(self) -> None:
        if self._place.index == 0 and self._listeners.open:
            self._shard.operation.admin.status.about.update(listeners=self._listeners.addresses)

    async def _join(self) -> None:
        """Connect to the other shards, recover sessions from the journal and their logs, and start."""
        while not self._shard.operation.startup.advance():
            await trio.sleep(0.001)
        freeze()
        if self._leader is not None:
            self._leader.opened()
        self._begin()

    def _begin(self) -> None:
        """Accept clients."""
        settings, place, shard = self._settings, self._place, self._shard
        self._listeners.begin(shard)
        store: Store = shard.store
        Scrubber(
            RealFiles(), store.own, self._scrubber, shard.timers, shard.events,
            bytes_per_second=settings.log.scrub_bytes_per_second,
        ).begin()  # fmt: skip
        if shard.operation.status is not None:
            shard.operation.status.begin()
        if place.index == 0:
            note_inventory(place)
            shard.operation.admin.status.about.update(version=VERSION, shards=place.count)
            self._announce_addresses()
        shard.operation.consumers.alarm.records_max = settings.events.lag_records_max
        shard.operation.consumers.alarm.seconds_max = settings.events.lag_seconds_max
        shard.operation.consumers.begin()
        shard.operation.topic_rates.begin()
        self._sidecars.start()
        self._begin_heartbeat()
        self._announce(IS_READY)
        if self._is_only_one:
            host, port = self._listeners.open[0].address
            tell(
                "broker.ready", host=host, port=port, page=page_address(settings),
                seconds=round(time.monotonic() - place.started, 3),
            )  # fmt: skip

    def _begin_heartbeat(self) -> None:
        """Have the service manager notice if this loop no longer turns."""
        later, place = self._shard.timers.later, self._place
        if self._is_only_one:
            if seconds := watchdog_seconds(os.getpid()):
                Heartbeat(later, seconds, partial(notify, ALIVE)).begin()
        elif seconds := watchdog_seconds(os.getppid()):
            Heartbeat(later, seconds, partial(os.write, place.ready, IS_ALIVE)).begin()

    async def _leave_cluster(self, leader: Leader) -> None:
        """Another node leads from here on, if one can: then this process has ended.

        Else it ends as if it had been killed: what was acknowledged is on other nodes, and a leader is chosen there."""
        if leader.hand_over():
            await trio.sleep(leader.hand_over_seconds_max)
            leader.leave()
        leader.close()
        self._shard.writing.commit.is_draining = True
        self._shard.cluster.peers.leave_all()

    def _announce(self, what: bytes) -> None:
        """Report to the supervisor, or to the process that started this one, that clients are served."""
        if self._is_only_one:
            notify(READY)
        else:
            os.write(self._place.ready, what)

    def _tell_stop(self, number: int) -> None:
        if self._is_only_one:
            notify(STOPPING)
            connections = len(self._shard.pump.connections)
            tell("broker.stopping", signal=signal.Signals(number).name, connections=connections)

    def end(self) -> None:
        """After `run`: end the threads, seal the log."""
        shard, place = self._shard, self._place
        self._sidecars.stop()
        shard.stop()
        self._scrubber.stop()
        shard.pump.close()
        shard.store.close()
        tell("broker.stop_phase", phase="log sealed", clients=0)
        if place.count == 1:
            seconds = round(time.monotonic() - place.started, 3)
            tell("broker.stopped", seconds=seconds, exit_status=0)


def sidecars_of(settings: Settings, place: ShardEnvironment) -> list[Sidecar]:
    """Those that this process owns."""
    if place.index != 0:
        return []
    if place.cluster is not None:
        return leader_sidecars(settings, place.data)  # the others belong to the node
    return sidecars(settings, place.data, place.sources)


def when_open(shard: Shard, call: Callable[[], None]) -> None:
    """In a cluster, once a majority has the log as it was found; at once on a node alone."""
    if shard.writing.replication is None:
        call()
    else:
        shard.writing.replication.when_open(call)


def hung_up() -> bool:
    """Whether SIGHUP came while it was blocked; it is taken."""
    if signal.SIGHUP not in signal.sigpending():
        return False
    signal.sigwait({signal.SIGHUP})
    return True
