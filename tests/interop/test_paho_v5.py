"""Eclipse Paho's Python client: what only MQTT 5 has."""

import time

import paho.mqtt.client as mqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.broker_process import Address
from tests.interop.paho_peer import SECONDS_MAX, Peer, peer, properties, told

V5 = mqtt.MQTTv5


def subscribe_numbered(client: Peer, topic_filter: str, number: int) -> None:
    numbered = properties("SUBSCRIBE", SubscriptionIdentifier=number)
    client.subscribe(topic_filter, options=SubscribeOptions(qos=1), properties=numbered)


def test_a_request_is_answered_where_it_asks_for(broker: Address, topic: str) -> None:
    with peer(broker, V5, f"{topic}-a") as asking, peer(broker, V5, f"{topic}-b") as answering:
        asking.subscribe(f"{topic}/answers", options=SubscribeOptions(qos=1))
        answering.subscribe(f"{topic}/questions", options=SubscribeOptions(qos=1))
        question = properties("PUBLISH", ResponseTopic=f"{topic}/answers", CorrelationData=b"\xff\x00")
        asking.publish(f"{topic}/questions", b"6 x 7", properties=question)
        (heard,) = answering.take()
        answer = properties("PUBLISH", CorrelationData=told(heard).CorrelationData)
        answering.publish(told(heard).ResponseTopic, b"42", properties=answer)
        (got,) = asking.take()
        assert (got.payload, told(got).CorrelationData) == (b"42", b"\xff\x00")


def test_messages_name_the_subscriptions_they_come_by(broker: Address, topic: str) -> None:
    with peer(broker, V5, f"{topic}-s") as client:
        subscribe_numbered(client, f"{topic}/a", 7)
        subscribe_numbered(client, f"{topic}/b", 300_000)
        client.publish(f"{topic}/a", b"by 7")
        client.publish(f"{topic}/b", b"by 300000")
        assert [told(m).SubscriptionIdentifier for m in client.take(2)] == [[7], [300_000]]


def test_a_message_past_its_expiry_is_not_delivered(broker: Address, topic: str) -> None:
    """MQTT 5.0, 3.3.2.3.3. What is delivered in time says how much of it is left."""
    with peer(broker, V5, f"{topic}-s", lasting=True) as subscriber:
        subscriber.subscribe(topic, options=SubscribeOptions(qos=1))
    with peer(broker, V5, f"{topic}-p") as publisher:
        for seconds in (1, 1000):
            expiry = properties("PUBLISH", MessageExpiryInterval=seconds)
            publisher.publish(topic, b"%d" % seconds, properties=expiry)
    time.sleep(1.2)  # the time that this test is about
    with peer(broker, V5, f"{topic}-s", lasting=True) as subscriber:
        (message,) = subscriber.take()
        assert message.payload == b"1000"
        assert 900 < told(message).MessageExpiryInterval < 1000


def test_a_topic_alias_stands_for_its_topic(broker: Address, topic: str) -> None:
    with peer(broker, V5, f"{topic}-s") as subscriber, peer(broker, V5, f"{topic}-p") as publisher:
        subscriber.subscribe(f"{topic}/#", options=SubscribeOptions(qos=1))
        assert publisher.properties.TopicAliasMaximum > 0
        alias = properties("PUBLISH", TopicAlias=1)
        for name, payload in ((f"{topic}/a", b"0"), ("", b"1"), (f"{topic}/b", b"2"), ("", b"3")):
            publisher.publish(name, payload, properties=alias)
        got = [(m.topic.rpartition("/")[2], m.payload) for m in subscriber.take(4)]
        assert got == [("a", b"0"), ("a", b"1"), ("b", b"2"), ("b", b"3")]


def test_no_local_retain_as_published_and_retain_handling(broker: Address, topic: str) -> None:
    with peer(broker, V5, f"{topic}-s") as client, peer(broker, V5, f"{topic}-p") as other:
        other.publish(topic, b"before", retain=True)
        options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True, retainHandling=2)
        client.subscribe(topic, options=options)
        client.publish(topic, b"own")
        other.publish(topic, b"other's", retain=True)
        (message,) = client.take()
        assert (message.payload, message.retain) == (b"other's", True)


def test_members_of_a_shared_subscription_part_the_messages(broker: Address, topic: str) -> None:
    with (
        peer(broker, V5, f"{topic}-a") as one,
        peer(broker, V5, f"{topic}-b") as two,
        peer(broker, V5, f"{topic}-p") as publisher,
    ):
        for member in (one, two):
            member.subscribe(f"$share/team/{topic}", options=SubscribeOptions(qos=1))
            member.subscribe(f"{topic}/end", options=SubscribeOptions(qos=1))
        publisher.publish_all(topic, [b"%d" % n for n in range(100)])
        publisher.publish(f"{topic}/end", b"end")
        shares = [
            list(iter(lambda: one.payloads(1)[0], b"end")),
            list(iter(lambda: two.payloads(1)[0], b"end")),
        ]
        assert sorted(int(payload) for share in shares for payload in share) == list(range(100))
        assert all(shares), "each had some"


def test_a_client_that_is_taken_over_is_told(broker: Address, topic: str) -> None:
    first = Peer(broker, V5, f"{topic}-s")
    with peer(broker, V5, f"{topic}-s"):
        assert first.ended.get(timeout=SECONDS_MAX).value == 0x8E
    first.leave()
