"""Eclipse Paho's Python client, MQTT 3.1.1 and 5."""

import queue
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.conftest import Rumqd

WAIT = 10
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["3.1.1", "5"])


class Peer:
    """A paho client whose messages and answers come through queues."""

    def __init__(
        self, port: int, version: int, client_id: str, *, lasting: bool = False, will: Any = None
    ) -> None:
        clean = {} if version == mqtt.MQTTv5 else {"clean_session": not lasting}
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=version, **clean)
        self.messages: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self.subacks: queue.Queue[Any] = queue.Queue()
        self.connected: queue.Queue[Any] = queue.Queue()
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, props: self.subacks.put((reasons, props))
        self.client.on_connect = lambda _c, _u, flags, reason, props: self.connected.put(
            (flags, reason, props)
        )
        if will is not None:
            self.client.will_set(*will)
        more = {}
        if version == mqtt.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 300 if lasting else 0
            more = {"clean_start": not lasting, "properties": properties}
        self.client.connect("127.0.0.1", port, **more)
        self.client.loop_start()
        self.flags, self.reason, self.properties = self.connected.get(timeout=WAIT)

    def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        self.client.subscribe(*args, **kwargs)
        return self.subacks.get(timeout=WAIT)

    def publish(self, topic: str, payload: bytes, qos: int = 1, **kwargs: Any) -> None:
        self.client.publish(topic, payload, qos, **kwargs).wait_for_publish(WAIT)

    def payloads(self, count: int) -> list[bytes]:
        return [self.messages.get(timeout=WAIT).payload for _ in range(count)]

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def die(self) -> None:
        """As a device whose power fails: no DISCONNECT."""
        sock = self.client.socket()
        assert sock is not None
        self.client.loop_stop()
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@contextmanager
def peer(*args: Any, **kwargs: Any) -> Iterator[Peer]:
    made = Peer(*args, **kwargs)
    try:
        yield made
    finally:
        made.leave()


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_in_order(port: int, topic: str, version: int, qos: int) -> None:
    with peer(port, version, f"{topic}-s") as subscriber, peer(port, version, f"{topic}-p") as publisher:
        subscriber.subscribe(f"{topic}/#", qos)
        sent = [b"%d" % n for n in range(200)]
        for payload in sent:
            publisher.client.publish(f"{topic}/x", payload, qos)
        assert subscriber.payloads(200) == sent


@VERSIONS
def test_a_session_gets_what_came_while_it_was_away(port: int, topic: str, version: int) -> None:
    with peer(port, version, f"{topic}-s", lasting=True) as subscriber:
        subscriber.subscribe(topic, 1)
    with peer(port, version, f"{topic}-p") as publisher:
        for n in range(50):
            publisher.publish(topic, b"%d" % n)
    with peer(port, version, f"{topic}-s", lasting=True) as subscriber:
        assert subscriber.flags.session_present
        assert subscriber.payloads(50) == [b"%d" % n for n in range(50)]


@VERSIONS
def test_the_will_of_one_that_dies_is_published(port: int, topic: str, version: int) -> None:
    with peer(port, version, f"{topic}-s") as watcher:
        watcher.subscribe(topic, 1)
        Peer(port, version, f"{topic}-d", will=(topic, b"gone", 1)).die()
        assert watcher.payloads(1) == [b"gone"]


@VERSIONS
def test_a_retained_message_greets(port: int, topic: str, version: int) -> None:
    with peer(port, version, f"{topic}-p") as publisher:
        publisher.publish(topic, b"state", retain=True)
    with peer(port, version, f"{topic}-s") as subscriber:
        subscriber.subscribe(topic, 1)
        message = subscriber.messages.get(timeout=WAIT)
        assert (message.payload, message.retain) == (b"state", True)


@VERSIONS
def test_a_replay_brings_everything_in_order_and_lives_on(port: int, topic: str, version: int) -> None:
    with peer(port, version, f"{topic}-p") as publisher, peer(port, version, f"{topic}-s") as late:
        for n in range(100):
            publisher.publish(f"{topic}/x", b"%d" % n, n % 3)
        late.subscribe(f"$log/earliest/{topic}/#", 1)
        publisher.publish(f"{topic}/x", b"live")
        assert late.payloads(101) == [*(b"%d" % n for n in range(100)), b"live"]


def test_a_replayed_message_says_where_it_stands(port: int, topic: str) -> None:
    with peer(port, mqtt.MQTTv5, f"{topic}-p") as client:
        for n in range(3):
            client.publish(topic, b"%d" % n)
        properties = Properties(PacketTypes.SUBSCRIBE)
        properties.UserProperty = ("rumq-from", "1")
        client.subscribe(topic, options=SubscribeOptions(qos=1), properties=properties)
        message = client.messages.get(timeout=WAIT)
        told = dict(message.properties.UserProperty)
        assert (message.payload, told["rumq-offset"], told["rumq-partition"]) == (b"1", "1", "main/g1/p0")
        assert told["rumq-lsn"].isdigit() and told["rumq-time"].endswith("Z")


def test_a_bad_place_is_refused_with_what_is_allowed(port: int, topic: str) -> None:
    with peer(port, mqtt.MQTTv5, f"{topic}-s") as client:
        reasons, properties = client.subscribe(f"$log/yesterday/{topic}", 1)
        assert reasons[0].value == 0x8F
        assert "earliest" in properties.ReasonString


def test_connack_says_what_an_acknowledgement_means(port: int, topic: str) -> None:
    with peer(port, mqtt.MQTTv5, f"{topic}-s") as client:
        assert ("rumq-durability", "disk") in client.properties.UserProperty


def test_mqtt_5_properties_pass_through_in_order(port: int, topic: str) -> None:
    with peer(port, mqtt.MQTTv5, f"{topic}-s") as client:
        client.subscribe(topic, options=SubscribeOptions(qos=1))
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [("b", "1"), ("a", "2"), ("b", "3")]
        properties.ResponseTopic = "answers/here"
        properties.CorrelationData = b"\x00\x01"
        properties.ContentType = "text/plain"
        client.publish(topic, b"x", properties=properties)
        got = client.messages.get(timeout=WAIT).properties
        assert got.UserProperty == [("b", "1"), ("a", "2"), ("b", "3")]
        assert (got.ResponseTopic, got.CorrelationData, got.ContentType) == (
            "answers/here",
            b"\x00\x01",
            "text/plain",
        )


def test_what_was_acknowledged_survives_kill(own: Rumqd, topic: str) -> None:
    """Ten times: publish with QoS 1, kill -9 after the acknowledgements, start again."""
    sent = []
    for turn in range(10):
        own.start()
        with peer(own.port, mqtt.MQTTv5, f"{topic}-p") as publisher:
            for n in range(20):
                publisher.publish(topic, b"%d/%d" % (turn, n), 1 + n % 2)
                sent.append(b"%d/%d" % (turn, n))
            own.kill()
    own.start()
    with peer(own.port, mqtt.MQTTv5, f"{topic}-s") as reader:
        reader.subscribe(f"$log/earliest/{topic}", 1)
        assert reader.payloads(len(sent)) == sent


def test_retained_messages_survive_a_stop(own: Rumqd, topic: str) -> None:
    own.start()
    with peer(own.port, mqtt.MQTTv5, f"{topic}-p") as publisher:
        publisher.publish(topic, b"old", retain=True)
        publisher.publish(topic, b"new", retain=True)
    assert own.stop() == 0
    own.start()
    with peer(own.port, mqtt.MQTTv5, f"{topic}-s") as subscriber:
        subscriber.subscribe(topic, 1)
        assert subscriber.payloads(1) == [b"new"]
