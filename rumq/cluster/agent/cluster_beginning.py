"""Puts what a cluster begins with into the control plane: its layout, and the first record of each shard.

What that is, and whether it is for this node to do: `rumq.cluster.orders.formation`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from rumq.cluster.agent.control_contact import ControlContact
from rumq.cluster.control.control_plane import ControlPlane, Replaced
from rumq.cluster.control.errors import ControlRefused, OutcomeUnknown, Unreachable
from rumq.cluster.control.records import ShardRecord
from rumq.cluster.control.view_tracker import ViewTracker
from rumq.cluster.orders.formation import (
    LayoutsDiffer,
    SeveralLogs,
    first_records,
    forms_cluster,
    layout_of,
    says_layout,
)
from rumq.events.output import get_logger

log = get_logger("rumq.cluster")
Replace = Callable[[int, int, ShardRecord], Awaitable[Replaced]]


class ClusterBeginning:
    """replace: a shard's record, as of a revision; shown: told whether the tracker's view has changed"""

    def __init__(
        self, plane: ControlPlane, contact: ControlContact, replace: Replace, shown: Callable[[bool], None]
    ) -> None:
        self._plane, self._contact, self._replace, self._shown = plane, contact, replace, shown
        self._told: list[str] = []  # nodes that the last reported refusal named

    async def step(self, tracker: ViewTracker) -> None:
        """After each list: nothing, unless something is missing and this node is to make it."""
        view = tracker.view
        if view is None or not (forms_cluster(view) or says_layout(view)):
            return
        try:
            records = first_records(view, claim=os.urandom(8).hex()) if forms_cluster(view) else {}
            layout = layout_of(view)
        except SeveralLogs as fault:
            if self._told != fault.nodes:
                self._told = fault.nodes
                log.error("cluster.several_logs", nodes=fault.nodes, why=str(fault))
            return
        except LayoutsDiffer as fault:
            if self._told != fault.nodes:
                self._told = fault.nodes
                log.error("cluster.layouts_differ", nodes=fault.nodes, why=str(fault))
            return
        try:
            if layout:
                self._shown(tracker.laid_out(await self._plane.layout(layout)))
            for shard, record in records.items():
                if tracker.may_claim(shard, 0):
                    await self._replace(shard, 0, record)
        except (Unreachable, OutcomeUnknown, ControlRefused) as fault:
            self._contact.failed(fault)
            return
        if records:
            log.info("cluster.formed", shards=len(records), nodes=[node.id for node in view.nodes])
