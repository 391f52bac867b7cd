"""This node as a member of its cluster: it joins, keeps its record and its lease alive, and lets the stamp of its disk
rise.

It knows nothing of views, claims and the node's processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import trio

from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.agent.cluster_check import check_cluster, cluster_gone, disk_restored
from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.agent.disk_stamp import DiskStamp
from rumq.cluster.agent.node_identity import NodeIdentity, absorbed, drained, met_cluster
from rumq.cluster.control.control_plane import LEASE_SECONDS, ControlPlane
from rumq.cluster.control.errors import ControlRefused, LeaseLost, NameTaken, Unreachable
from rumq.cluster.control.records import ClusterRecord, NodeRecord, Versioned
from rumq.cluster.links.greeting import FEATURE_LEVEL
from rumq.events.output import get_logger

RENEW_SECONDS = 1.0
ANNOUNCE_EVERY = 10  # renewals between two announcements; a record has the node's clock
STAMP_SECONDS = 10.0
RETRY_SECONDS = 0.25
LEASE_RETRY_SECONDS = 0.05  # after a lease was lost, until the node announces itself again
TAKEN_SECONDS = 2.0 * LEASE_SECONDS  # an earlier run's lease is over by then

log = get_logger("rumq.cluster")


class NodeMembership:
    """clock_us: the wall clock, in microseconds since 1970

    restored: called when the disk is found, while the node runs, to be an older copy of itself"""

    def __init__(
        self, settings: AgentSettings, identity: NodeIdentity, plane: ControlPlane, contact: ControlContact,
        clock_us: Callable[[], int], restored: Callable[[], None],
    ) -> None:  # fmt: skip
        self._settings, self.identity, self._plane, self._contact = settings, identity, plane, contact
        self._clock_us, self._restored = clock_us, restored
        self._data = Path(settings.data)
        self.stamp = DiskStamp(self._data)
        self._announce = trio.Event()  # set to announce the node at once
        self._kafka = ""  # where its Kafka server is, as of `NodeRecord`
        self._told_versions: set[str] = set()  # versions of the control plane whose faults were reported

    async def join(self) -> ClusterRecord:
        """The record of the cluster, which is made if there is none. raises: ControlRefused"""
        settings = self._settings
        make = ClusterRecord(
            id=os.urandom(8).hex(), shards=settings.shards, replicas=settings.replicas,
            feature_level=FEATURE_LEVEL, created_us=self._clock_us(),
        )  # fmt: skip
        while True:
            try:
                await self._look_at_versions()
                found = (await self._plane.snapshot()).cluster
                if found is None and self.identity.cluster_id:
                    raise ControlRefused(cluster_gone(self.identity))
                cluster = found or await self._plane.cluster_record(make)
                check_cluster(settings, cluster)
                self.identity = met_cluster(self._data, self.identity, cluster.id)
                await self._look_at_disk()
            except Unreachable as fault:
                self._contact.failed(fault)
                await trio.sleep(RETRY_SECONDS)
                continue
            self._contact.answered()
            return cluster

    async def _look_at_versions(self) -> None:
        for version, faults in (await self._plane.version_faults()).items():
            if faults and version not in self._told_versions:
                self._told_versions.add(version)
                log.warning("cluster.etcd_old", version=version, faults=faults)

    async def _look_at_disk(self) -> None:
        """Before the node's processes see any view, so before they vote."""
        noted = await self._plane.stamp(self.identity.disk, 0)
        if self.stamp.met(noted):
            log.error("cluster.disk_restored", why=disk_restored(self.identity))

    async def raise_stamp(self) -> None:
        """The stamp on the disk rises also while the control plane is away, which is told when it is back."""
        try:
            stamp = self.stamp.rise()
        except OSError:
            return  # a full or failing disk; the shards' processes tell
        noted = await self._plane.stamp(self.identity.disk, stamp)
        if self.stamp.met(noted):  # this machine was set back while it ran
            log.error("cluster.disk_restored", why=disk_restored(self.identity))
            self._restored()

    async def keep_stamped(self) -> None:
        """Let the stamp rise every STAMP_SECONDS, until cancelled."""
        while True:
            try:
                await self.raise_stamp()
            except (Unreachable, ControlRefused):
                pass  # the next one tells; what watches the control plane says that it is away
            await trio.sleep(STAMP_SECONDS)

    async def keep_announced(self) -> None:
        """Announce the node and renew its lease, until cancelled. raises: NameTaken"""
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
                await trio.sleep(LEASE_RETRY_SECONDS)
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

    def _node_record(self) -> NodeRecord:
        settings = self._settings
        return NodeRecord(
            id=self.identity.id, host=settings.host, port=settings.port, mqtt=settings.mqtt, zone=settings.zone,
            incarnation=settings.incarnation, version=settings.version, feature_level=FEATURE_LEVEL,
            has_log=self.identity.has_log, clock_us=self._clock_us(), leaves=self.identity.leaves,
            partitions=settings.partitions, moves=True, kafka=self._kafka, keeps=True, packs=True,
        )  # fmt: skip

    def announce_soon(self) -> None:
        self._announce.set()

    def say_kafka(self, address: str) -> None:
        """Where clients of Kafka find this node from now on; empty: nowhere."""
        if address != self._kafka:
            self._kafka = address
            self.announce_soon()

    def note_shards(self, shards: list[Versioned], count: int) -> None:
        """Note on disk what the shards' records say of this node's log. count: of the cluster's shards"""
        self.identity = absorbed(self._data, self.identity, shards, count)

    def drain(self, *, leaves: bool) -> str:
        """Leave the cluster, or take part again, and announce it. returns: why it could not be noted, empty: it is"""
        try:
            self.identity = drained(self._data, self.identity, leaves=leaves)
        except OSError as fault:
            return f"{self._data}: {fault.strerror}"
        self.announce_soon()
        return ""

    async def leave(self) -> None:
        """At the end of this process; the lease expires if this fails."""
        try:
            await self._plane.leave()
            await self.raise_stamp()  # a copy of the disk that was made before this stop is an old one
        except (Unreachable, ControlRefused):
            pass
