"""The agent of a node: the only process that talks to the control plane. It says that the node lives, tells the node's
processes who leads what, and carries out their claims.

It decides nothing about a shard: claims come from the shards' processes, and the control plane chooses among them.
While the control plane does not answer, everything goes on with the last view (C5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import trio

from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.agent.local_requests import LocalRequests
from rumq.cluster.agent.node_identity import NodeIdentity
from rumq.cluster.agent.node_membership import NodeMembership
from rumq.cluster.agent.view_listing import ViewListing
from rumq.cluster.connections.agent_socket import AgentServer, LocalProcess
from rumq.cluster.control.agent_messages import SOCKET_NAME, AgentMessage, AgentStatus
from rumq.cluster.control.control_plane import ControlHealth, ControlPlane
from rumq.cluster.control.view_tracker import SeenEpochs, ViewTracker
from rumq.cluster.orders.auto_replacement import AutoReplacement
from rumq.cluster.orders.leader_changes import LeaderChanges
from rumq.cluster.orders.leader_stream import AgentTls
from rumq.cluster.orders.order_routing import OrderRouting

LEAVE_SECONDS_MAX = 1.0


class Agent:
    """clock_us: the wall clock, in microseconds since 1970; ready: called when there is a first view

    tls: of connections to other nodes, None for plain bytes"""

    def __init__(
        self, settings: AgentSettings, identity: NodeIdentity, plane: ControlPlane,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000, ready: Callable[[], None] = lambda: None,
        tls: AgentTls | None = None,
    ) -> None:  # fmt: skip
        self._plane, self._ready, self._data = plane, ready, Path(settings.data)
        self.server = AgentServer(self._data / SOCKET_NAME, self._met, self._heard, self._gone)
        self._contact = contact = ControlContact(lambda: self.views.lost())
        self.membership = NodeMembership(
            settings, identity, plane, contact, clock_us, restored=lambda: self.views.note_restored()
        )
        replacement = AutoReplacement(settings.replace_seconds)
        self.views = ViewListing(self.server, plane, contact, self.membership, replacement, clock_us)
        self.orders = OrderRouting(self.server, tls)
        self.requests = LocalRequests(self.server, plane, contact, self.membership, self.views, self.orders)
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; then the node is gone at once. raises: ControlError, in a group: this node cannot be"""
        membership, views = self.membership, self.views
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await nursery.start(self.server.run)
                nursery.start_soon(self._contact.watch)
                task_status.started()
                cluster = await membership.join()
                tracker = views.tracker = ViewTracker(membership.identity.id, cluster, SeenEpochs(self._data))
                tracker.restored = membership.stamp.restored
                nursery.start_soon(membership.keep_announced)
                nursery.start_soon(membership.keep_stamped)
                nursery.start_soon(views.run, tracker, cluster, self._ready)
                nursery.start_soon(self._plane.changes, views.list_soon)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE_SECONDS_MAX):
                await membership.leave()
                await self._plane.close()

    # The processes of this node

    def _met(self, process: LocalProcess) -> None:
        self.views.show_to(process)

    def _heard(self, process: LocalProcess, message: AgentMessage) -> None:
        assert self._nursery is not None
        self.requests.heard(process, message, self._nursery)

    def _gone(self, process: LocalProcess) -> None:
        self.requests.process_gone(process)

    # For operators

    def status(self, health: ControlHealth, request: int = 0) -> AgentStatus:
        """What this agent knows now."""
        return self.requests.status(health, request)

    async def health(self) -> ControlHealth:
        """How each member of the control plane is; asks them."""
        return await self._plane.health()

    @property
    def leader_changes(self) -> LeaderChanges:
        return self.views.leader_changes

    @property
    def renew_seconds(self) -> float:
        """That the last renewal of the node's lease took."""
        return self._contact.renew_seconds
