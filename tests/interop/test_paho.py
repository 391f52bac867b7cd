"""Eclipse Paho's Python client, MQTT 3.1.1 and 5: what every client does, and what rumq adds to it."""

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.broker_process import Address, Rumqd
from tests.interop.paho_peer import VERSIONS, Peer, peer, properties, told


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_in_order(broker: Address, topic: str, version: int, qos: int) -> None:
    with peer(broker, version, f"{topic}-s") as subscriber, peer(broker, version, f"{topic}-p") as publisher:
        subscriber.subscribe(f"{topic}/#", qos)
        sent = [b"%d" % n for n in range(200)]
        publisher.publish_all(f"{topic}/x", sent, qos)
        got = subscriber.take(200)
        assert [message.payload for message in got] == sent
        assert {(message.qos, message.retain, message.topic) for message in got} == {(qos, False, f"{topic}/x")}


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_gets_what_came_while_it_was_away(broker: Address, topic: str, version: int, qos: int) -> None:
    with peer(broker, version, f"{topic}-s", lasting=True) as subscriber:
        subscriber.subscribe(topic, qos)
    with peer(broker, version, f"{topic}-p") as publisher:
        publisher.publish_all(topic, [b"%d" % n for n in range(50)], qos)
    with peer(broker, version, f"{topic}-s", lasting=True) as subscriber:
        assert subscriber.flags.session_present
        assert subscriber.payloads(50) == [b"%d" % n for n in range(50)]


@VERSIONS
def test_a_session_that_broke_off_gets_what_came_since(broker: Address, topic: str, version: int) -> None:
    dying = Peer(broker, version, f"{topic}-s", lasting=True)
    dying.subscribe(topic, 1)
    dying.die()
    with peer(broker, version, f"{topic}-p") as publisher:
        publisher.publish_all(topic, [b"%d" % n for n in range(20)])
    with peer(broker, version, f"{topic}-s", lasting=True) as subscriber:
        assert subscriber.payloads(20) == [b"%d" % n for n in range(20)]


@VERSIONS
def test_the_will_of_one_that_dies_is_published(broker: Address, topic: str, version: int) -> None:
    with peer(broker, version, f"{topic}-s") as watcher:
        watcher.subscribe(topic, 1)
        Peer(broker, version, f"{topic}-d", will=(topic, b"gone", 1)).die()
        assert watcher.payloads(1) == [b"gone"]


@VERSIONS
def test_the_will_of_one_that_says_goodbye_is_not(broker: Address, topic: str, version: int) -> None:
    with peer(broker, version, f"{topic}-s") as watcher:
        watcher.subscribe(topic, 1)
        Peer(broker, version, f"{topic}-d", will=(topic, b"gone", 1)).leave()
        # Whoever connects under its name is served after its DISCONNECT.
        with peer(broker, version, f"{topic}-d") as next_one:
            next_one.publish(topic, b"nothing before this")
        assert watcher.payloads(1) == [b"nothing before this"]


@VERSIONS
def test_a_retained_message_greets_until_it_is_cleared(broker: Address, topic: str, version: int) -> None:
    with (
        peer(broker, version, f"{topic}-p") as publisher,
        peer(broker, version, f"{topic}-s") as first,
        peer(broker, version, f"{topic}-t") as second,
    ):
        publisher.publish(topic, b"state", retain=True)
        first.subscribe(topic, 1)
        (message,) = first.take()
        assert (message.payload, message.retain) == (b"state", True)
        publisher.publish(topic, b"", retain=True)
        second.subscribe(topic, 1)
        publisher.publish(topic, b"live")
        (message,) = second.take()
        assert (message.payload, message.retain) == (b"live", False)


@VERSIONS
def test_a_replay_brings_everything_in_order_and_lives_on(log_broker: Address, topic: str, version: int) -> None:
    with (
        peer(log_broker, version, f"{topic}-p") as publisher,
        peer(log_broker, version, f"{topic}-s") as late,
    ):
        for n in range(60):
            publisher.publish(f"{topic}/x", b"%d" % n, n % 3)
        late.subscribe(f"$log/earliest/{topic}/#", 1)
        publisher.publish(f"{topic}/x", b"live")
        got = late.take(61)
        assert [message.payload for message in got] == [*(b"%d" % n for n in range(60)), b"live"]
        assert {message.topic for message in got} == {f"{topic}/x"}, "the topic it was published to"


def test_a_replayed_message_says_where_it_stands(log_broker: Address, topic: str) -> None:
    with peer(log_broker, mqtt.MQTTv5, f"{topic}-p") as client:
        for n in range(3):
            client.publish(topic, b"%d" % n)
        place = properties("SUBSCRIBE", UserProperty=("rumq-from", "1"))
        client.subscribe(topic, options=SubscribeOptions(qos=1), properties=place)
        (message,) = client.take()
        where = dict(told(message).UserProperty)
        assert (message.payload, where["rumq-offset"], where["rumq-partition"]) == (b"1", "1", "main/g1/p0")
        assert where["rumq-lsn"].isdigit() and where["rumq-time"].endswith("Z")


def test_connack_says_what_an_acknowledgement_means(log_broker: Address, topic: str) -> None:
    ask = {"UserProperty": ("rumq-durability", "tell")}
    with peer(log_broker, mqtt.MQTTv5, f"{topic}-s", connect=ask) as client:
        assert ("rumq-durability", "disk") in client.properties.UserProperty
    with peer(log_broker, mqtt.MQTTv5, f"{topic}-t") as client:
        assert not hasattr(client.properties, "UserProperty"), "nobody is told unasked"


def test_mqtt_5_properties_pass_through_in_order(broker: Address, topic: str) -> None:
    with peer(broker, mqtt.MQTTv5, f"{topic}-s") as client:
        client.subscribe(topic, options=SubscribeOptions(qos=1))
        sent = properties(
            "PUBLISH",
            UserProperty=[("b", "1"), ("a", "2"), ("b", "3")],
            ResponseTopic="answers/here",
            CorrelationData=b"\x00\x01",
            ContentType="text/plain",
            PayloadFormatIndicator=1,
        )
        client.publish(topic, b"x", properties=sent)
        got = told(client.take()[0])
        assert got.UserProperty == [("b", "1"), ("a", "2"), ("b", "3")]
        assert (got.ResponseTopic, got.CorrelationData) == ("answers/here", b"\x00\x01")
        assert (got.ContentType, got.PayloadFormatIndicator) == ("text/plain", 1)


def test_what_was_acknowledged_survives_kill(own: Rumqd, topic: str) -> None:
    """Three times: publish, kill -9 after the acknowledgements, start again. tests/limits kills more often."""
    sent = []
    for turn in range(3):
        own.start()
        publisher = Peer(own.address, mqtt.MQTTv5, f"{topic}-p")
        for n in range(20):
            publisher.publish(topic, b"%d/%d" % (turn, n), 1 + n % 2)
            sent.append(b"%d/%d" % (turn, n))
        own.kill()
        publisher.leave()
    own.start()
    with peer(own.address, mqtt.MQTTv5, f"{topic}-s") as reader:
        reader.subscribe(f"$log/earliest/{topic}", 1)
        assert reader.payloads(len(sent)) == sent


def test_retained_messages_survive_a_stop(own: Rumqd, topic: str) -> None:
    own.start()
    with peer(own.address, mqtt.MQTTv5, f"{topic}-p") as publisher:
        publisher.publish(topic, b"old", retain=True)
        publisher.publish(topic, b"new", retain=True)
    assert own.stop() == 0
    own.start()
    with peer(own.address, mqtt.MQTTv5, f"{topic}-s") as subscriber:
        subscriber.subscribe(topic, 1)
        assert subscriber.payloads(1) == [b"new"]
