"""Retained messages by filter: pages follow each other, long payloads are shortened."""

import base64

import pytest

from rumq.shards.admin.queries import retained_search
from rumq.shards.admin.queries.retained_search import PAYLOAD_BYTES_MAX, as_text, literal_prefix
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish


@pytest.mark.parametrize(
    ("topic_filter", "prefix"),
    [
        ("#", ""),
        ("+", ""),
        ("a", "a"),
        ("a/#", "a"),
        ("a/+/b", "a"),
        ("a/b/#", "a/b"),
        ("+/a", ""),
        ("a//#", "a/"),
    ],
)
def test_the_part_before_a_wildcard_says_where_to_begin(topic_filter: str, prefix: str) -> None:
    assert literal_prefix(topic_filter) == prefix


def test_bytes_that_are_no_text_are_base64() -> None:
    assert as_text("µ".encode()) == ("µ", "utf-8")
    assert as_text(b"\xff\x00") == (base64.b64encode(b"\xff\x00").decode(), "base64")


def test_a_long_payload_is_shortened_and_its_length_told(shard: Shard) -> None:
    Client(shard, "p", 5).say(wire.publish("t", b"x" * 3000, 1, 1, retain=True))
    (row,) = ask(shard, "retained", topic="t").messages
    assert (row.bytes, row.payload) == (3000, "x" * PAYLOAD_BYTES_MAX)


def test_a_page_after_a_topic_before_the_filter_has_the_first_that_it_matches(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "a", "r", "r/1", "s", retain=True)
    assert [row.topic for row in ask(shard, "retained", topic="r/#", after="a").messages] == ["r", "r/1"]
    assert [row.topic for row in ask(shard, "retained", topic="r/#", after="r").messages] == ["r/1"]
    assert ask(shard, "retained", topic="r/#", after="s").messages == []


def test_pages_follow_each_other_over_all_of_them(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained_search, "PAGES_A_TURN", 1)
    names = sorted(f"{letter}/{number}" for letter in "rst" for number in range(150))
    publish(shard, Client(shard, "p", 5), *names, retain=True)
    found: list[str] = []
    while True:
        page = ask(shard, "retained", limit=200, after=found[-1] if found else None)
        found += [row.topic for row in page.messages]
        if not page.left_out:
            break
    assert found == names
    last = ask(shard, "retained", topic="+/149").messages
    assert [row.topic for row in last] == ["r/149", "s/149", "t/149"]


def test_no_more_than_200_are_asked_for_at_once(shard: Shard) -> None:
    with pytest.raises(ValueError, match="limit"):
        ask(shard, "retained", limit=201)


def test_retained_messages_are_paged_in_the_order_of_topics(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), *(f"r/{n}" for n in range(5)), "s", "r", retain=True)
    page = ask(shard, "retained", topic="r/#", limit=3)
    assert [row.topic for row in page.messages] == ["r", "r/0", "r/1"] and page.left_out > 0
    assert (page.messages[0].payload, page.messages[0].encoding, page.messages[0].bytes) == (
        "21.5",
        "utf-8",
        4,
    )
    rest = ask(shard, "retained", topic="r/#", after="r/1")
    assert [row.topic for row in rest.messages] == ["r/2", "r/3", "r/4"] and rest.left_out == 0
    assert [row.topic for row in ask(shard, "retained", topic="+").messages] == ["r", "s"]
    with pytest.raises(ValueError, match="#"):
        ask(shard, "retained", topic="a#")
