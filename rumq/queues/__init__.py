"""Queues and channels: topics of the log, and shared subscriptions that are durable. docs/reference/queues.md

    async with trio.open_nursery() as nursery:
        await nursery.start(queues.run)
        await queues.create_queue("anna", "news")
        channel = await queues.create_channel("anna", "news")
        await queues.push("anna", "news", [Push(payload=b"hello")])
        async with queues.consume("anna", channel.definition.channel_id, credit=100) as consumer:
            for message in await consumer.next_batch(messages_max=100, wait_seconds=30):
                await consumer.acknowledge([message.id])

One object per process that has doors (gateway, gRPC). Everything in it is a cursor on the log: nothing has a store of
its own. Refuses to know the broker but by MQTT, and the doors."""

from rumq.queues.engine.consumer import Consumer
from rumq.queues.link.ports import QueueBounds, QueuePorts
from rumq.queues.queues import Queues
from rumq.queues.rules.definitions import ChannelDefinition, ChannelSettings, QueueDefinition, QueueSettings
from rumq.queues.rules.errors import (
    BadQueueRequest,
    NoSuchQueue,
    QueueError,
    QueueExists,
    QueueFull,
    QueueNotAllowed,
    QueuesUnavailable,
)
from rumq.queues.rules.messages import (
    ChannelFigures,
    ChannelInfo,
    Delivered,
    Push,
    Pushed,
    PushResult,
    QueueFigures,
    QueueInfo,
)
from rumq.queues.rules.names import MessageId, parse_message_id

__all__ = [
    "BadQueueRequest",
    "ChannelDefinition",
    "ChannelFigures",
    "ChannelInfo",
    "ChannelSettings",
    "Consumer",
    "Delivered",
    "MessageId",
    "NoSuchQueue",
    "Push",
    "PushResult",
    "Pushed",
    "QueueBounds",
    "QueueDefinition",
    "QueueError",
    "QueueExists",
    "QueueFigures",
    "QueueFull",
    "QueueInfo",
    "QueueNotAllowed",
    "QueuePorts",
    "QueueSettings",
    "Queues",
    "QueuesUnavailable",
    "parse_message_id",
]
