"""Names of queues, topics and channels. docs/reference/queues.md, "Names"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt.topics import check_topic_filter, check_topic_name
from rumq.queues.rules import names as n
from rumq.queues.rules.errors import BadQueueRequest


@pytest.mark.parametrize(
    ("given_name", "found"),
    [
        ("News", "news"), ("NEWS", "news"), ("Ünïcode", "ünïcode"), ("e\u0301", "é"), ("İ", "i̇"), ("ǅ", "ǆ"),
        ("__NONE__", "__none__"), ("a.b-c_d e", "a.b-c_d e"),
    ],
)  # fmt: skip
def test_a_label_is_folded(given_name: str, found: str) -> None:
    assert n.check_label(given_name) == found


@given(st.text(max_size=40))
def test_folding_twice_is_folding_once(name: str) -> None:
    assert n.folded(n.folded(name)) == n.folded(name)
    assert n.folded(name) == n.folded(name.lower())


@given(st.text(max_size=300))
def test_what_is_accepted_is_a_topic_of_mqtt(name: str) -> None:
    try:
        label = n.check_label(name)
        topic = n.check_topic(name)
    except BadQueueRequest:
        return
    assert 0 < len(label.encode()) <= n.LABEL_BYTES_MAX and "/" not in label
    check_topic_name(n.message_topic(label, topic))
    check_topic_filter(n.share_filter("id", label, topic))
    check_topic_filter(n.channel_filter(label, None))
    assert n.split_topic(n.message_topic(label, topic)) == (label, topic)


def test_bounds_are_in_bytes() -> None:
    assert n.check_label("x" * 200)
    for bad in ("x" * 201, "é" * 101, "x" * 65_536):
        with pytest.raises(BadQueueRequest):
            n.check_label(bad)
    assert n.check_topic("a/b/" + "x" * 496)
    with pytest.raises(BadQueueRequest):
        n.check_topic("x" * 501)
    with pytest.raises(BadQueueRequest):
        n.check_channel_id("x" * 65)


def test_none_is_reserved() -> None:
    assert n.check_topic(None) == "__none__"
    for written in ("__none__", "__NONE__", "__None__"):
        with pytest.raises(BadQueueRequest, match="reserved"):
            n.check_topic(written)


def test_a_message_id_is_read_as_it_is_written() -> None:
    for message_id in (n.MessageId("a/b", 17), n.MessageId("__none__", 1), n.MessageId("x@y", n.NUMBER_MAX)):
        assert n.parse_message_id(str(message_id)) == message_id
    assert n.parse_message_id("5@Sport") == n.MessageId("sport", 5)


@pytest.mark.parametrize(
    "text", ["", "5", "@", "5@", "x@t", "0@t", "-1@t", "٣@t", "9" * 30 + "@t", f"{1 << 63}@t", "5@#"]
)
def test_other_ids_are_refused(text: str) -> None:
    with pytest.raises(BadQueueRequest):
        n.parse_message_id(text)


def test_dead_letters_have_topics_of_their_own() -> None:
    assert n.message_topic("news.dead", "t") == "$queues/$dead/news/t"
    assert n.share_filter("c", "news.dead", None) == "$share/c/$queues/$dead/news/#"
    assert n.split_topic("$queues/$dead/news/a/b") == ("news.dead", "a/b")
    assert n.dead_label("news") == n.dead_label("news.dead") == "news.dead"
    with pytest.raises(BadQueueRequest):
        n.check_label(".dead")
