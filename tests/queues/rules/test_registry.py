"""Queues and channels as their retained definitions add up."""

from __future__ import annotations

from rumq.queues.rules import definitions as d
from rumq.queues.rules.registry import QueueRegistry, channel_topic, queue_topic

QUEUE = d.QueueDefinition(label="news", created_us=5)
CHANNEL = d.ChannelDefinition(channel_id="c", label="news", created_us=6)


def test_definitions_come_change_and_go() -> None:
    registry = QueueRegistry()
    assert registry.apply(queue_topic("news"), d.encoded(QUEUE))
    assert registry.apply(channel_topic("news", "c"), d.encoded(CHANNEL))
    assert registry.queues == {"news": QUEUE} and registry.channels_of("news") == [CHANNEL]
    assert registry.apply(channel_topic("other", "c"), b"")  # of another queue: this one stays
    assert registry.channels == {"c": CHANNEL}
    assert registry.apply(channel_topic("news", "c"), b"") and registry.apply(queue_topic("news"), b"")
    assert not registry.queues and not registry.channels and not registry.ids_of


def test_what_is_no_definition_is_skipped() -> None:
    registry = QueueRegistry()
    for topic in ("$queues/news/t", "$queues/$config/", "$queues/$config/$mark", "x"):
        assert not registry.apply(topic, d.encoded(QUEUE))
    assert not registry.apply(queue_topic("news"), b"no JSON")
    assert registry.bad == 1 and not registry.queues
