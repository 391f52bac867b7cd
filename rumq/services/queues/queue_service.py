"""The table of rumq.v1.Queues: each of its calls and who answers it."""

from __future__ import annotations

from rumq.services.calls.call import CallMethod, Service
from rumq.services.queues.channel_calls import ChannelCalls
from rumq.services.queues.consume_calls import ConsumeCalls
from rumq.services.queues.push_calls import PushCalls
from rumq.services.queues.queue_calls import QueueCalls
from rumq.services.queues.queue_door import NAME, QueueDoor


def queue_service(
    door: QueueDoor, queues: QueueCalls, channels: ChannelCalls, push: PushCalls, consume: ConsumeCalls
) -> Service:
    return Service(
        NAME,
        (
            CallMethod("CreateQueue", queues.create),
            CallMethod("GetQueue", queues.get),
            CallMethod("ListQueues", queues.list),
            CallMethod("DeleteQueue", queues.delete),
            CallMethod("RebuildQueue", queues.rebuild),
            CallMethod("ListTopics", queues.topics),
            CallMethod("CreateChannel", channels.create),
            CallMethod("GetChannel", channels.get),
            CallMethod("ListChannels", channels.list),
            CallMethod("DeleteChannel", channels.delete),
            CallMethod("PushToQueue", push.push),
            CallMethod("PushStream", push.push_stream, takes_stream=True, gives_stream=True),
            CallMethod("SubscribeToChannel", consume.subscribe, gives_stream=True),
            CallMethod("Acknowledge", consume.acknowledge),
            CallMethod("Consume", consume.consume, takes_stream=True, gives_stream=True),
            CallMethod("PeekQueue", queues.peek),
            CallMethod("PurgeQueue", queues.purge),
            CallMethod("PurgeChannel", channels.purge),
            CallMethod("RedriveQueue", queues.redrive),
            CallMethod("GetHeartbeat", queues.heartbeat),
        ),
        lambda: not door.state,
    )
