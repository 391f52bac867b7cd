"""Faults of queues as those of calls. rumq/queues/rules/errors.py has the kinds."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.queues import QueueError, QueueFull
from rumq.services.contract.faults import CallFault

REASON_OF: Mapping[str, str] = {
    "not_found": "QUEUE_UNKNOWN", "exists": "QUEUE_EXISTS", "invalid": "ARGUMENT_INVALID",
    "not_allowed": "NOT_AUTHORIZED", "full": "QUEUE_FULL", "unavailable": "QUEUES_AWAY",
}  # fmt: skip


def fault_of(fault: QueueError) -> CallFault:
    reason = REASON_OF[fault.kind]
    if isinstance(fault, QueueFull) and fault.depth_max:
        return CallFault(reason, fault.why, depth=fault.depth, limit=fault.depth_max)
    return CallFault(reason, fault.why)
