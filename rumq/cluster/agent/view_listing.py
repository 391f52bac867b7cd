"""Lists the control plane again and again, and shows each new view of the cluster to the processes of this node.

While the control plane does not answer, the last view stays (C5)."""

from __future__ import annotations

from collections.abc import Callable

import trio

from rumq.cluster.agent.cluster_beginning import ClusterBeginning
from rumq.cluster.agent.cluster_check import cluster_gone
from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.agent.node_membership import RETRY_SECONDS, NodeMembership
from rumq.cluster.connections.agent_socket import AgentServer, LocalProcess
from rumq.cluster.control.control_plane import ControlPlane, Replaced
from rumq.cluster.control.errors import ControlRefused, Unreachable
from rumq.cluster.control.records import ClusterRecord, ShardRecord, Versioned, View
from rumq.cluster.control.view_tracker import ViewTracker
from rumq.cluster.orders.auto_replacement import AutoReplacement
from rumq.cluster.orders.leader_changes import LeaderChanges
from rumq.events.output import get_logger

LIST_SECONDS = 10.0
DOUBT_SECONDS = 0.5  # until the next list, after one that looked stale

log = get_logger("rumq.cluster")


class ViewListing:
    """clock_us: the wall clock, in microseconds since 1970; tracker: None until the node has joined its cluster"""

    def __init__(
        self, server: AgentServer, plane: ControlPlane, contact: ControlContact, membership: NodeMembership,
        replacement: AutoReplacement, clock_us: Callable[[], int],
    ) -> None:  # fmt: skip
        self._server, self._plane, self._contact, self._membership = server, plane, contact, membership
        self._replacement, self._clock_us = replacement, clock_us
        self._beginning = ClusterBeginning(plane, contact, self.replace, self._show_if)
        self.tracker: ViewTracker | None = None
        self.leader_changes = LeaderChanges()
        self._is_gone = False  # True while the control plane has no record of this cluster
        self._hint = trio.Event()  # set to list at once

    @property
    def view(self) -> View | None:
        return self.tracker.view if self.tracker is not None else None

    async def run(self, tracker: ViewTracker, cluster: ClusterRecord, ready: Callable[[], None]) -> None:
        """Until cancelled. ready: called when there is a first view"""
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
                self._show_if(tracker.take(snapshot, trio.current_time(), self._clock_us()))
                self._membership.note_shards(snapshot.shards, cluster.shards)
                if is_first:
                    ready()
                if all(node.id != self._membership.identity.id for node in snapshot.nodes):
                    # Its lease may live all the same: without the record other nodes do not know where this one is.
                    self._membership.announce_soon()
                await self._beginning.step(tracker)
                self._replace_the_gone(tracker.view)
            else:
                self._show_if(tracker.lost())
                if not self._is_gone:
                    self._is_gone = True
                    log.error("cluster.record_lost", why=cluster_gone(self._membership.identity))
            with trio.move_on_after(DOUBT_SECONDS if tracker.is_doubtful else LIST_SECONDS):
                await hint.wait()

    def _replace_the_gone(self, view: View | None) -> None:
        """Orders that nobody asked for: their answers are dropped, and what they changed is seen in the view."""
        if view is not None:
            for order in self._replacement.orders(view, trio.current_time()):
                if (shard := self._server.maybe_shard(order.shard)) is not None:
                    shard.send(order)

    async def replace(self, shard: int, revision: int, record: ShardRecord) -> Replaced:
        """Put a record of a shard in place of that revision. raises: OutcomeUnknown, Unreachable, ControlRefused"""
        done = await self._plane.replace(shard, revision, record)
        self._contact.answered()
        self.put(shard, done.now)
        return done

    def put(self, shard: int, record: Versioned | None) -> None:
        """The control plane has answered with this record of a shard. None: with none"""
        if record is not None and self.tracker is not None:
            self._show_if(self.tracker.put(shard, record))

    def may_claim(self, shard: int, epoch: int) -> bool:
        tracker = self.tracker
        return tracker is not None and tracker.view is not None and tracker.may_claim(shard, epoch)

    def list_soon(self) -> None:
        self._hint.set()

    def note_restored(self) -> None:
        """This machine was set back to an earlier state: the next view says so."""
        if self.tracker is not None:
            self.tracker.restored = self._membership.stamp.restored
            self.list_soon()

    def lost(self) -> None:
        """The control plane does not answer: the view is no longer current."""
        if self.tracker is not None:
            self._show_if(self.tracker.lost())

    def _show_if(self, changed: bool) -> None:
        if changed and self.tracker is not None and self.tracker.view is not None:
            self.leader_changes.note(self.tracker.view)
            for process in self._server.processes:
                process.show(self.tracker.view)

    def show_to(self, process: LocalProcess) -> None:
        if self.tracker is not None and self.tracker.view is not None:
            process.show(self.tracker.view)
