"""What a process of the broker's gives its queues: the gateway, and the services that speak gRPC."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from commitlog.read.partition_view import PartitionView
from rumq.admin.answers import Answer
from rumq.admin.operations import Operation
from rumq.admin.requests import Request
from rumq.auth.identity import Identity
from rumq.auth.permit import Permit
from rumq.auth.rules import RuleSet
from rumq.gateway.broker.broker_socket import open_broker
from rumq.gateway.records.partition_views import PartitionViews
from rumq.process.listeners.gateway_listener import gateway_socket
from rumq.queues import QueueBounds, QueuePorts
from rumq.settings.queue_streams import LASTING, NAME
from rumq.settings.table import Settings


def queue_ports(
    settings: Settings,
    name: str,
    rules: Callable[[], RuleSet | None],
    ask: Callable[[Operation, Request], Awaitable[Answer]],
    event: Callable[..., None],
) -> QueuePorts:
    """name: of the process, such as "gateway"; its node is added. rules: as they are now; ask: the shards"""
    views = PartitionViews(settings.data.dir)
    node = settings.cluster.node if settings.cluster.name else ""
    queues = settings.queues

    def views_of_queues() -> list[PartitionView]:
        return [view for view in views.current() if view.stream in (NAME, LASTING)]

    def permit_of(user: str) -> Permit | None:
        present = rules()
        return None if present is None else present.permit(Identity(user or None), "")

    return QueuePorts(
        name="-".join(filter(None, (name, node))),
        open_broker=partial(open_broker, gateway_socket(settings)),
        permit_of=permit_of,
        event=event,
        now_us=lambda: time.time_ns() // 1000,
        views=views_of_queues,
        ask=ask,
        bounds=QueueBounds(
            queues.ttl_seconds_max, queues.lasting_seconds_max, queues.queues_max, queues.channels_max,
            queues.delayed_max,
        ),
    )  # fmt: skip
