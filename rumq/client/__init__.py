"""A small MQTT client on trio, for MQTT 5 and 3.1.1, that can begin in the past of a rumq broker.

    async with rumq.client.connect("localhost", client_id="desk") as client:
        await client.publish("plant/7/temp", b"21.5", qos=1)
        await client.subscribe("plant/#", qos=1, from_="earliest")
        async for message in client.messages():
            print(message.offset, message.topic, message.payload)

Over TLS: `connect("mqtts://broker.example", tls=Tls(cafile="ca.pem", cert="client.pem", key="client.key"))`.

Refuses to know the broker. Errors: `rumq.errors.ClientError` and its children.
"""

from rumq.client.client import Client
from rumq.client.connector import connect, connect_over
from rumq.client.session.messages import Message, Outgoing
from rumq.client.transport.tls import Tls
from rumq.errors import ClientError, ConnectionLost, Refused
from rumq.mqtt.packets import Will
from rumq.mqtt.properties import Properties

__all__ = [
    "Client",
    "ClientError",
    "ConnectionLost",
    "Message",
    "Outgoing",
    "Properties",
    "Refused",
    "Tls",
    "Will",
    "connect",
    "connect_over",
]
