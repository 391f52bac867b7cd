"""One Paho client whose messages and answers come through queues, each waited for with a deadline."""

import queue
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.broker_process import Address

SECONDS_MAX = 60
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["3.1.1", "5"])


def properties(packet: str, **values: Any) -> Any:
    """Properties of a packet by Paho's names: properties("PUBLISH", ContentType="text/plain")."""
    made: Any = Properties(getattr(PacketTypes, packet))  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(made, name, value)
    return made


def told(message: Any) -> Any:
    """The properties of a message; Paho makes their names as they come, so no type knows them."""
    return message.properties


class Peer:
    """A connected client; with `lasting`, of the session that its client id has."""

    def __init__(
        self,
        at: Address,
        version: int,
        client_id: str,
        *,
        lasting: bool = False,
        will: Any = None,
        connect: dict[str, Any] | None = None,
    ) -> None:
        """connect: properties of CONNECT, by Paho's names"""
        clean: dict[str, Any] = {} if version == mqtt.MQTTv5 else {"clean_session": not lasting}
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=MQTTProtocolVersion(version),
            reconnect_on_failure=False,
            **clean,
        )
        self.messages: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self.subacks: queue.Queue[Any] = queue.Queue()
        self.unsubacks: queue.Queue[Any] = queue.Queue()
        self.connected: queue.Queue[Any] = queue.Queue()
        self.ended: queue.Queue[Any] = queue.Queue()
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, more: self.subacks.put((reasons, more))
        self.client.on_unsubscribe = lambda _c, _u, _m, reasons, _more: self.unsubacks.put(reasons)
        self.client.on_connect = lambda _c, _u, flags, reason, more: self.connected.put((flags, reason, more))
        self.client.on_disconnect = lambda _c, _u, _flags, reason, _more: self.ended.put(reason)
        if will is not None:
            self.client.will_set(*will)
        more: dict[str, Any] = {}
        if version == mqtt.MQTTv5:
            expiry = properties("CONNECT", SessionExpiryInterval=300 if lasting else 0, **(connect or {}))
            more = {"clean_start": not lasting, "properties": expiry}
        self.client.connect(at.host, at.port, **more)
        self.client.loop_start()
        self.flags, self.reason, self.properties = self.connected.get(timeout=SECONDS_MAX)

    def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """(reason codes, properties) of the SUBACK."""
        self.client.subscribe(*args, **kwargs)
        return self.subacks.get(timeout=SECONDS_MAX)

    def unsubscribe(self, topic_filter: str) -> None:
        self.client.unsubscribe(topic_filter)
        self.unsubacks.get(timeout=SECONDS_MAX)

    def publish(self, topic: str, payload: bytes, qos: int = 1, **kwargs: Any) -> None:
        """Returns once it is acknowledged, with QoS 0 once it is sent."""
        sent = self.client.publish(topic, payload, qos, **kwargs)
        sent.wait_for_publish(SECONDS_MAX)
        assert sent.is_published(), f"no acknowledgement of {payload!r}"

    def publish_all(self, topic: str, payloads: list[bytes], qos: int = 1) -> None:
        """Many at once; returns when the last is acknowledged."""
        for sent in [self.client.publish(topic, payload, qos) for payload in payloads]:
            sent.wait_for_publish(SECONDS_MAX)
            assert sent.is_published()

    def take(self, count: int = 1) -> list[mqtt.MQTTMessage]:
        return [self.messages.get(timeout=SECONDS_MAX) for _ in range(count)]

    def payloads(self, count: int) -> list[bytes]:
        return [bytes(message.payload) for message in self.take(count)]

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def die(self) -> None:
        """As a device whose power fails: no DISCONNECT."""
        sock: Any = self.client.socket()
        sock.shutdown(socket.SHUT_RDWR)
        self.ended.get(timeout=SECONDS_MAX)
        self.client.loop_stop()


@contextmanager
def peer(*args: Any, **kwargs: Any) -> Iterator[Peer]:
    made = Peer(*args, **kwargs)
    try:
        yield made
    finally:
        made.leave()
