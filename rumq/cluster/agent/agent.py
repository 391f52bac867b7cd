"""The agent of a node: the only process that talks to the control plane. It says that the node lives, tells the node's
processes who leads what, and carries out their claims.

It decides nothing about a shard: claims come from the shards' processes, and the control plane chooses among them.
While the control plane does not answer, everything goes on with the last view (C5)."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import trio

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.agent.cluster_beginning import ClusterBeginning
from rumq.cluster.agent.cluster_check import check_cluster, cluster_gone, disk_restored
from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.agent.disk_stamp import DiskStamp
from rumq.cluster.agent.node_identity import NodeIdentity, absorbed, drained, met_cluster
from rumq.cluster.agent.process_ends import ProcessEnds
from rumq.cluster.agent.view_tracker import SeenEpochs, ViewTracker
from rumq.cluster.connections.agent_socket import AgentServer, LocalProcess
from rumq.cluster.control.agent_messages import (
    SOCKET_NAME,
    AgentMessage,
    AgentStatus,
    AskStatus,
    Claim,
    Claimed,
    DrainNode,
    Order,
    OrderResult,
    Report,
)
from rumq.cluster.control.control_plane import LEASE_SECONDS, ControlHealth, ControlPlane, Replaced
from rumq.cluster.control.errors import ControlRefused, LeaseLost, NameTaken, OutcomeUnknown, Unreachable
from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, View
from rumq.cluster.links.greeting import FEATURE_LEVEL
from rumq.cluster.orders.auto_replacement import AutoReplacement
from rumq.cluster.orders.leader_changes import LeaderChanges
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.cluster.orders.order_routing import OrderRouting
from rumq.events.output import get_logger

RENEW_SECONDS = 1.0
ANNOUNCE_EVERY = 10  # renewals; a record has the node's clock
LIST_SECONDS = 10.0
STAMP_SECONDS = 10.0
DOUBT_SECONDS = 0.5  # until the next list, after one that looked stale
RETRY_SECONDS = 0.25
SETTLE_SECONDS, SETTLE_STEP_SECONDS = 0.5, 0.05
TERMS_SECONDS_MAX = 4.0  # that an operator waits for what leaders say
TAKEN_SECONDS = 2.0 * LEASE_SECONDS  # an earlier run's lease is over by then

log = get_logger("rumq.cluster")


class Agent:
    """clock_us: the wall clock, in microseconds since 1970; ready: called when there is a first view

    tls: of connections to other nodes, None for plain bytes"""

    def __init__(
        self, settings: AgentSettings, identity: NodeIdentity, plane: ControlPlane,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000, ready: Callable[[], None] = lambda: None,
        tls: AgentTls | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._identity, self._plane, self._clock_us = settings, identity, plane, clock_us
        self._ready = ready
        self._contact = ControlContact(self._lost)
        self._beginning = ClusterBeginning(plane, self._contact, self._replace, self._shown)
        self._data = Path(settings.data)
        self._tracker: ViewTracker | None = None
        self._server = AgentServer(self._data / SOCKET_NAME, self._met, self._heard, self._gone)
        self._stamp = DiskStamp(self._data)
        self._orders = OrderRouting(self._server, tls)
        self._replacement = AutoReplacement(settings.replace_seconds)
        self._reports: dict[int, Report] = {}
        self.leader_changes = LeaderChanges()
        self._is_gone = False
        self._hint = self._announce = trio.Event()
        self._told_versions: set[str] = set()
        self._ends = ProcessEnds()
        self.ask_terms: Callable[[], Awaitable[list[TermRow]]] | None = None  # of all leaders, for operators
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; then the node is gone at once. raises: ControlError, in a group: this node cannot be"""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await nursery.start(self._server.run)
                nursery.start_soon(self._contact.watch)
                task_status.started()
                cluster = await self._join()
                epochs = SeenEpochs(self._data)
                self._tracker = ViewTracker(self._identity.id, cluster, epochs)
                self._tracker.restored = self._stamp.restored
                nursery.start_soon(self._keep_announced)
                nursery.start_soon(self._keep_stamped)
                nursery.start_soon(self._keep_listed, self._tracker, cluster)
                nursery.start_soon(self._plane.changes, self._hinted)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                try:
                    await self._plane.leave()  # the lease expires if this fails
                    await self._rise()  # a copy of the disk that was made before this stop is an old one
                except (Unreachable, ControlRefused):
                    pass
                await self._plane.close()

    # The control plane

    async def _join(self) -> ClusterRecord:
        settings = self._settings
        make = ClusterRecord(
            id=os.urandom(8).hex(), shards=settings.shards, replicas=settings.replicas,
            feature_level=FEATURE_LEVEL, created_us=self._clock_us(),
        )  # fmt: skip
        while True:
            try:
                await self._look_at_versions()
                found = (await self._plane.snapshot()).cluster
                if found is None and self._identity.cluster_id:
                    raise ControlRefused(cluster_gone(self._identity))
                cluster = found or await self._plane.cluster_record(make)
                check_cluster(settings, cluster)
                self._identity = met_cluster(self._data, self._identity, cluster.id)
                await self._look_at_disk()
            except Unreachable as fault:
                self._contact.failed(fault)
                await trio.sleep(RETRY_SECONDS)
                continue
            self._contact.answered()
            return cluster

    async def _look_at_disk(self) -> None:
        """Before the node's processes see any view, so before they vote."""
        noted = await self._plane.stamp(self._identity.disk, 0)
        if self._stamp.met(noted):
            log.error("cluster.disk_restored", why=disk_restored(self._identity))

    async def _rise(self) -> None:
        """The stamp on the disk rises also while the control plane is away, which is told when it is back."""
        try:
            stamp = self._stamp.rise()
        except OSError:
            return  # a full or failing disk; the shards' processes tell
        noted = await self._plane.stamp(self._identity.disk, stamp)
        if self._stamp.met(noted):  # this machine was set back while it ran
            log.error("cluster.disk_restored", why=disk_restored(self._identity))
            if self._tracker is not None:
                self._tracker.restored = self._stamp.restored
                self._hint.set()

    async def _keep_stamped(self) -> None:
        while True:
            try:
                await self._rise()
            except (Unreachable, ControlRefused):
                pass  # the next one tells; what watches the control plane says that it is away
            await trio.sleep(STAMP_SECONDS)

    async def _look_at_versions(self) -> None:
        for version, faults in (await self._plane.version_faults()).items():
            if faults and version not in self._told_versions:
                self._told_versions.add(version)
                log.warning("cluster.etcd_old", version=version, faults=faults)

    async def _keep_announced(self) -> None:
        beats = 0
        taken_at: float | None = None
        while True:
            wake = self._announce = trio.Event()
            try:
                if beats % ANNOUNCE_EVERY:
                    began_at = trio.current_time()
                    await self._plane.renew()
                    self._contact.renew_seconds = trio.current_time() - began_at
                else:
                    await self._plane.announce(self._node_record())
                    taken_at = None
                beats += 1
                self._contact.answered()
            except LeaseLost:
                beats = 0
                await trio.sleep(SETTLE_STEP_SECONDS)
                continue
            except NameTaken:
                now = trio.current_time()
                taken_at = now if taken_at is None else taken_at
                if now - taken_at >= TAKEN_SECONDS:
                    raise
                beats = 0
                await trio.sleep(RETRY_SECONDS)
                continue
            except (Unreachable, ControlRefused) as fault:
                self._contact.failed(fault)
            with trio.move_on_after(RENEW_SECONDS):
                await wake.wait()
                beats = 0

    async def _keep_listed(self, tracker: ViewTracker, cluster: ClusterRecord) -> None:
        while True:
            hint = self._hint = trio.Event()
            try:
                snapshot = await self._plane.snapshot()
            except (Unreachable, ControlRefused) as fault:
                self._contact.failed(fault)
                await trio.sleep(RETRY_SECONDS)
                continue
            self._contact.answered()
            if snapshot.cluster is not None and snapshot.cluster.id == cluster.id:
                self._is_gone, is_first = False, tracker.view is None
                self._shown(tracker.take(snapshot, trio.current_time(), self._clock_us()))
                self._identity = absorbed(self._data, self._identity, snapshot.shards, cluster.shards)
                if is_first:
                    self._ready()
                if all(node.id != self._identity.id for node in snapshot.nodes):
                    # Its lease may live all the same: without the record other nodes do not know where this one is.
                    self._announce.set()
                await self._beginning.step(tracker)
                self._replace_the_gone(tracker.view)
            else:
                self._shown(tracker.lost())
                if not self._is_gone:
                    self._is_gone = True
                    log.error("cluster.record_lost", why=cluster_gone(self._identity))
            with trio.move_on_after(DOUBT_SECONDS if tracker.is_doubtful else LIST_SECONDS):
                await hint.wait()

    def _replace_the_gone(self, view: View | None) -> None:
        """Orders that nobody asked for: their answers are dropped, and what they changed is seen in the view."""
        if view is not None:
            for order in self._replacement.orders(view, trio.current_time()):
                if (shard := self._server.maybe_shard(order.shard)) is not None:
                    shard.send(order)

    async def _replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        done = await self._plane.replace(shard, revision, record)
        self._contact.answered()
        if done.now is not None and self._tracker is not None:
            self._shown(self._tracker.put(shard, done.now))
        return done

    def _hinted(self) -> None:
        self._hint.set()

    def _lost(self) -> None:
        if self._tracker is not None:
            self._shown(self._tracker.lost())

    def _node_record(self) -> NodeRecord:
        settings = self._settings
        return NodeRecord(
            id=self._identity.id, host=settings.host, port=settings.port, mqtt=settings.mqtt, zone=settings.zone,
            incarnation=settings.incarnation, version=settings.version, feature_level=FEATURE_LEVEL,
            has_log=self._identity.has_log, clock_us=self._clock_us(), leaves=self._identity.leaves,
            partitions=settings.partitions, moves=True,
        )  # fmt: skip

    # The processes of this node

    def _shown(self, changed: bool) -> None:
        if changed and self._tracker is not None and self._tracker.view is not None:
            self.leader_changes.note(self._tracker.view)
            for process in self._server.processes:
                process.show(self._tracker.view)

    def _met(self, process: LocalProcess) -> None:
        if self._tracker is not None and self._tracker.view is not None:
            process.show(self._tracker.view)

    def _gone(self, process: LocalProcess) -> None:
        shard = process.here.shard
        if process.here.role == "shard":
            self._ends.note(shard, trio.current_time())
            if self._server.maybe_shard(shard) is None:
                self._reports.pop(shard, None)
        self._orders.gone(process)

    def _heard(self, process: LocalProcess, message: AgentMessage) -> None:
        assert self._nursery is not None
        if isinstance(message, Report):
            self._reports[message.shard] = message
        elif isinstance(message, Claim):
            self._nursery.start_soon(self._claim, process, message)
        elif isinstance(message, Order):
            view = self._tracker.view if self._tracker is not None else None
            self._orders.order(process, message, view, self._nursery)
        elif isinstance(message, OrderResult):
            self._orders.done(process, message)
        elif isinstance(message, AskStatus):
            self._nursery.start_soon(self._say_status, process, message)
        elif isinstance(message, DrainNode):
            if not message.node:
                try:
                    self._identity = drained(self._data, self._identity, leaves=message.leaves)
                except OSError as fault:
                    process.send(OrderResult(message.request, f"{self._data}: {fault.strerror}"))
                    return
                self._announce.set()
            if message.node or not message.leaves:
                self._nursery.start_soon(self._note_removed, process, message)
            else:
                process.send(OrderResult(message.request))

    async def _claim(self, process: LocalProcess, claim: Claim) -> None:
        """Sent once. Without an answer it is settled for a while; later views tell what became of it."""
        tracker = self._tracker
        if tracker is None or tracker.view is None or not tracker.may_claim(claim.shard, claim.record.epoch):
            process.send(Claimed(claim.request, won=False, known=True, now=None))
            return
        done, is_known = Replaced(False, None), True
        try:
            done = await self._replace(claim.shard, claim.revision, claim.record)
        except OutcomeUnknown as fault:
            self._contact.failed(fault)
            settled = await self._maybe_settle(claim)
            done, is_known = settled or done, settled is not None
        except (Unreachable, ControlRefused) as fault:
            self._contact.failed(fault)
        process.send(Claimed(claim.request, won=done.won, known=is_known, now=done.now))

    async def _note_removed(self, process: LocalProcess, leave: DrainNode) -> None:
        """Of any node, also one that is gone. An empty name: this one takes part again."""
        why = ""
        try:
            await self._plane.note_removed(leave.node or self._identity.id, is_removed=leave.leaves)
        except (Unreachable, OutcomeUnknown, ControlRefused) as fault:
            self._contact.failed(fault)
            why = str(fault)
        process.send(OrderResult(leave.request, why))
        self._hinted()

    async def _maybe_settle(self, claim: Claim) -> Replaced | None:
        with trio.move_on_after(SETTLE_SECONDS):
            while True:
                await trio.sleep(SETTLE_STEP_SECONDS)
                try:
                    done = await self._plane.settle(claim.shard, claim.revision, claim.record.claim)
                except (OutcomeUnknown, Unreachable):
                    continue
                if done.now is not None and self._tracker is not None:
                    self._shown(self._tracker.put(claim.shard, done.now))
                return done
        return None

    async def _say_status(self, process: LocalProcess, asked: AskStatus) -> None:
        terms: list[TermRow] | None = None
        if self.ask_terms is not None:
            with trio.move_on_after(TERMS_SECONDS_MAX):
                terms = await self.ask_terms()
        status = self.status(await self.health(), asked.request)
        process.send(msgspec.structs.replace(status, terms=terms))

    def status(self, health: ControlHealth, request: int = 0) -> AgentStatus:
        """What this agent knows now."""
        return AgentStatus(
            request=request,
            view=self._tracker.view if self._tracker else None,
            reports=[report for _, report in sorted(self._reports.items())],
            processes=[each.here for each in self._server.processes],
            health=health,
            lost_seconds=self._contact.lost_seconds,
            requests=self._plane.requests,
            ends=self._ends.within_a_minute(trio.current_time()),
        )

    async def health(self) -> ControlHealth:
        """How each member of the control plane is; asks them."""
        return await self._plane.health()

    @property
    def renew_seconds(self) -> float:
        """That the last renewal of the node's lease took."""
        return self._contact.renew_seconds
