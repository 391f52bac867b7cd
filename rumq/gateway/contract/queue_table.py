"""The endpoints of queues and channels, a part of those of `endpoints`. docs/reference/gateway.md, "Queues"."""

from __future__ import annotations

from rumq.admin.topic_names import Tells
from rumq.gateway.contract import queue_messages as m
from rumq.gateway.contract.endpoint import Endpoint

OF_QUEUES = Tells(of_queues=True)
QUEUES, CHANNELS = "/api/v1/queues", "/api/v1/channels"
QUEUE, CHANNEL = f"{QUEUES}/{{label}}", f"{CHANNELS}/{{id}}"

QUEUE_ENDPOINTS = (
    Endpoint(
        "get", QUEUES, "queues", "queues with their depth, oldest message, consumers and dead letters", "read",
        m.QueueList, OF_QUEUES, m.QueueSearch,
    ),
    Endpoint(
        "post", QUEUE, "create_queue", "create a queue; one that is there with the same settings is told as it is",
        "administer", m.QueueRow, OF_QUEUES, m.OneQueue, m.NewQueue, "it was created",
    ),
    Endpoint("get", QUEUE, "queue", "one queue", "read", m.QueueRow, OF_QUEUES, m.OneQueue),
    Endpoint(
        "delete", QUEUE, "delete_queue", "delete a queue with its messages and channels", "administer",
        m.RemovedName, OF_QUEUES, m.OneQueue,
    ),
    Endpoint(
        "get", f"{QUEUE}/topics", "queue_topics", "topics of a queue", "read",
        m.QueueTopics, OF_QUEUES, m.OneQueue,
    ),
    Endpoint(
        "get", f"{QUEUE}/messages", "peek", "messages of a queue, oldest first; nothing is consumed", "read",
        m.PeekedMessages, OF_QUEUES, m.PeekMessages,
    ),
    Endpoint(
        "post", f"{QUEUE}/messages", "push", "push one message, or a batch of up to 1,000", "publish",
        m.PushedMessages, OF_QUEUES, m.PushTo, m.PushMessage,
    ),
    Endpoint(
        "get", f"{QUEUE}/dead-letters", "dead_letters", "dead letters of a queue, oldest first", "read",
        m.PeekedMessages, OF_QUEUES, m.PeekMessages,
    ),
    Endpoint(
        "post", f"{QUEUE}/redrive", "redrive", "push the dead letters of a queue to where they came from",
        "administer", m.CountedMessages, OF_QUEUES, m.RedriveMessages, m.NoFields,
    ),
    Endpoint(
        "post", f"{QUEUE}/purge", "purge_queue", "drop what the channels of a queue have not acknowledged",
        "administer", m.CountedMessages, OF_QUEUES, m.OneQueue, m.NoFields,
    ),
    Endpoint(
        "post", f"{QUEUE}/channels", "create_channel", "create a channel of a queue, of one topic or of all",
        "consume", m.ChannelRow, OF_QUEUES, m.OneQueue, m.NewChannelOfAll, "it was created",
    ),
    Endpoint(
        "put", f"{QUEUE}/channels/{{topic:path}}", "create_topic_channel", "create a channel of one topic of a queue",
        "consume", m.ChannelRow, OF_QUEUES, m.TopicChannel, m.NewChannel, "it was created",
    ),
    Endpoint(
        "get", CHANNELS, "channels", "channels with their depth and consumers", "read",
        m.ChannelList, OF_QUEUES, m.ChannelSearch,
    ),
    Endpoint("get", CHANNEL, "channel", "one channel", "read", m.ChannelRow, OF_QUEUES, m.OneChannel),
    Endpoint(
        "delete", CHANNEL, "delete_channel", "delete a channel; the messages of its queue stay", "consume",
        m.RemovedName, OF_QUEUES, m.OneChannel,
    ),
    Endpoint(
        "get", f"{CHANNEL}/messages", "take", "take messages of a channel, which a consumer then acknowledges",
        "consume", m.TakenMessages, OF_QUEUES, m.TakeMessages,
    ),
    Endpoint(
        "post", f"{CHANNEL}/acknowledgements", "acknowledge", "acknowledge, reject or go on holding messages",
        "consume", m.AnsweredMessages, OF_QUEUES, m.OneChannel, m.Acknowledgements,
    ),
    Endpoint(
        "post", f"{CHANNEL}/purge", "purge_channel", "drop what a channel has not acknowledged", "administer",
        m.CountedMessages, OF_QUEUES, m.OneChannel, m.NoFields,
    ),
    Endpoint(
        "delete", f"{CHANNEL}/consumers/{{consumer}}", "end_consumer",
        "end a consumer: what it holds is given to others at once", "consume",
        m.RemovedName, OF_QUEUES, m.OneConsumer,
    ),
)  # fmt: skip
