"""An MQTT client on trio, for MQTT 5 and 3.1.1. docs/guides/client.md.

    async with rumq.client.connect("localhost") as client:
        await client.publish("plant/7/temp", b"21.5", qos=1)
        await client.subscribe("plant/#", qos=1, from_="earliest")
        async for message in client.messages():
            print(message.offset, message.topic, message.payload)

Over TLS: `connect("mqtts://broker.example", tls=Tls(cafile="ca.pem", cert="client.pem", key="client.key"))`.

Refuses to know the broker. Errors: `rumq.errors.ClientError` and its children.
"""

from rumq.client.client import Client
from rumq.client.connector import connect, connect_over
from rumq.client.login.enhanced_login import EnhancedLogin, LoginFailed
from rumq.client.login.scram import ScramLogin
from rumq.client.outbox.outbox import ClientOutbox, OutboxOptions
from rumq.client.outbox.outbox_errors import OutboxError, OutboxFailed, OutboxFull, OutboxInUse
from rumq.client.patterns.requests import NoResponse
from rumq.client.queues.queue import Queue
from rumq.client.queues.queue_errors import QueueRefused
from rumq.client.queues.queue_messages import Channel, ChannelMessage, QueuePush
from rumq.client.session.back_off import Reconnect
from rumq.client.session.messages import Message, Outgoing
from rumq.client.trace_context import context_of, opentelemetry_context
from rumq.client.transport.tls import Tls
from rumq.errors import ClientError, ConnectionLost, Refused
from rumq.mqtt.packets import Will
from rumq.mqtt.properties import Properties

__all__ = [
    "Channel",
    "ChannelMessage",
    "Client",
    "ClientError",
    "ClientOutbox",
    "ConnectionLost",
    "EnhancedLogin",
    "LoginFailed",
    "Message",
    "NoResponse",
    "OutboxError",
    "OutboxFailed",
    "OutboxFull",
    "OutboxInUse",
    "OutboxOptions",
    "Outgoing",
    "Properties",
    "Queue",
    "QueuePush",
    "QueueRefused",
    "Reconnect",
    "Refused",
    "ScramLogin",
    "Tls",
    "Will",
    "connect",
    "connect_over",
    "context_of",
    "opentelemetry_context",
]
