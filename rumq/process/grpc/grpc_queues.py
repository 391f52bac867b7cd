"""The queues of the gRPC server, put together from settings. docs/reference/queues.md"""

from __future__ import annotations

from collections.abc import Callable

from rumq.auth.rules import RuleSet
from rumq.events.event_log import tell
from rumq.gateway.broker.shard_client import ShardQueries
from rumq.process.wiring.queue_ports import queue_ports
from rumq.services.access.waiting_bytes import WaitingBytes
from rumq.services.calls.call import Service
from rumq.services.queues.audit import QueueAudit
from rumq.services.queues.channel_calls import ChannelCalls
from rumq.services.queues.consume_calls import ConsumeCalls
from rumq.services.queues.push_calls import PushCalls
from rumq.services.queues.queue_calls import QueueCalls
from rumq.services.queues.queue_door import QueueDoor
from rumq.services.queues.queue_service import queue_service
from rumq.settings.table import Settings


def queue_door(settings: Settings, shards: ShardQueries, rules: Callable[[], RuleSet | None]) -> QueueDoor:
    """rules: as a reload leaves them"""
    return QueueDoor(queue_ports(settings, "grpc", rules, shards.ask, tell) if settings.queues.enabled else None, tell)


def queues_of(settings: Settings, door: QueueDoor, waiting: WaitingBytes, now_us: Callable[[], int]) -> Service:
    audit = QueueAudit(tell)
    node = settings.cluster.node if settings.cluster.name else ""
    return queue_service(
        door,
        QueueCalls(door, audit, node, now_us),
        ChannelCalls(door, audit),
        PushCalls(door, waiting, settings.grpc.request_messages_max),
        ConsumeCalls(door),
    )
