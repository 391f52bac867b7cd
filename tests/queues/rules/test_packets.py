"""A message of a queue as a PUBLISH, and back."""

from __future__ import annotations

import pytest

from rumq.mqtt.packets import Publish
from rumq.queues.rules import packets as k
from rumq.queues.rules.messages import Delivered, Push
from rumq.queues.rules.names import MessageId


def test_what_is_pushed_is_delivered() -> None:
    push = Push(
        payload=b"x", key="k", headers=(("a", "b"), ("a", "c"), ("rumq-offset", "99")), content_type="text/plain"
    )
    properties = k.properties_of(push, 60)
    assert properties["message_expiry_interval"] == 60
    place = [
        ("rumq-offset", "4"),
        ("rumq-lsn", "9"),
        ("rumq-partition", "queues/g1/p0"),
        ("rumq-time", "1970-01-01T00:00:01Z"),
    ]
    properties["user_properties"] = [*properties["user_properties"], *place]
    packet = Publish("$queues/news/a/b", b"x", 1, packet_id=7, properties=properties)
    assert k.delivered(packet) == Delivered(
        MessageId("a/b", 5), b"x", 1, 1_000_000, "k", (("a", "b"), ("a", "c")), "text/plain"
    )
    assert k.expiry_of(packet) == 60


def test_the_last_of_our_properties_counts_for_the_broker_appends_its_own() -> None:
    told = [("rumq-offset", "77"), ("rumq-offset", "4")]
    packet = Publish("$queues/news/t", b"", 1, packet_id=1, properties={"user_properties": told})
    assert k.delivered(packet).id == MessageId("t", 5)


def test_a_message_without_its_place_has_no_id() -> None:
    with pytest.raises(k.NoPlace):
        k.delivered(Publish("$queues/news/t", b"", 1, packet_id=1))


def test_where_a_delayed_message_waits_says_where_it_goes() -> None:
    for topic in ("$queues/news/a/b", "$queues/$dead/news/t"):
        assert k.due_topic(k.delayed_topic(topic)) == topic
        assert k.delayed_topic(topic).startswith("$queues/$delayed/")
