"""Queues and messages as REST tells them: where they are asked for, who is counted, payloads and messages to push."""

from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from rumq.gateway.queues.queue_rows import Door, door_of, message_row, pushes, queue_row, topic_shown
from rumq.queues import (
    ChannelDefinition,
    ChannelFigures,
    ChannelInfo,
    Delivered,
    MessageId,
    QueueDefinition,
    QueueFigures,
    QueueInfo,
)


@pytest.mark.parametrize(
    ("host", "scheme", "door"),
    [
        ("plant.example:8443", "https", Door("plant.example", 8443)),
        ("plant.example", "https", Door("plant.example", 443)),
        ("127.0.0.1", "http", Door("127.0.0.1", 80)),
        ("[::1]:99", "http", Door("::1", 99)),
        ("plant.example:port", "http", Door("", 80)),
        ("plant.example:99999999", "http", Door("", 80)),
    ],
)
def test_the_door_is_where_the_client_has_found_it(host: str, scheme: str, door: Door) -> None:
    scope: Any = {
        "type": "http", "scheme": scheme, "path": "/", "query_string": b"", "server": None,
        "headers": [(b"host", host.encode())],
    }  # fmt: skip
    assert door_of(Request(scope)) == door


def channel(label: str, consumers: int, dead: int) -> ChannelInfo:
    definition = ChannelDefinition(channel_id=f"{label}-c", label=label, created_us=1)
    return ChannelInfo(definition, ChannelFigures(consumers=consumers, dead=dead), "")


def test_a_queue_counts_the_consumers_of_its_own_channels() -> None:
    info = QueueInfo(QueueDefinition(label="news", created_us=1), QueueFigures(depth_records=7), ("b", "a"))
    channels = [channel("news", 2, 1), channel("news", 1, 4), channel("other", 9, 9)]
    row = queue_row(info, channels, 5, Door("h", 1))
    assert (row.consumers, row.dead, row.depth, row.oldest_us, row.channels) == (3, 5, 7, None, ["a", "b"])


def test_a_message_without_a_topic_has_none() -> None:
    assert topic_shown("__none__") is None and topic_shown("sports") == "sports" and topic_shown(None) is None
    row = message_row(Delivered(MessageId("__none__", 3), b"\xff", 1, 5), is_binary=False)
    assert (row.id, row.number, row.topic, row.payload, row.encoding) == ("3@__none__", 3, None, "/w==", "base64")
    payload: Any = message_row(Delivered(MessageId("t", 3), b"\xff", 1, 5), is_binary=True).payload
    assert payload == b"\xff"


def test_messages_to_push_have_the_payloads_of_publish() -> None:
    (one,) = pushes(b'{"payload": {"a": 1}, "headers": [["k", "v"]], "delay_seconds": 5}', is_msgpack=False)
    assert (one.payload, one.content_type, one.headers) == (b'{"a": 1}', "application/json", (("k", "v"),))
    assert one.delay_seconds == 5 and one.topic is None and one.expiry_seconds is None
    packed = msgspec.msgpack.encode([{"payload": b"\xff", "topic": "t"}, {}])
    assert [(each.payload, each.topic) for each in pushes(packed, is_msgpack=True)] == [(b"\xff", "t"), (b"", None)]
