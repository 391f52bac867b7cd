"""What the operator sees of a shard: its parts, its clients in detail, its topics by level, its retained messages."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.admin.merging import merged
from rumq.admin.operations import OPERATIONS, request_of
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard

LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def ask(shard: Shard, question: str, **more: Any) -> Any:
    """The answer as a program gets it: over the socket and merged, checked against its type."""
    said = {"ask": question, **more}
    answer = shard.parts.admin.answer(said)
    if callable(answer):
        answers: list[Any] = []
        answer(answers.append)
        for _ in range(8):
            shard.settle()
        (answer,) = answers
    reply = msgspec.json.decode(msgspec.json.encode(answer))
    return merged(OPERATIONS[question], request_of(said)[1], [reply])


def publish(shard: Shard, client: Client, *topics: str, retain: bool = False) -> None:
    for number, topic in enumerate(topics):
        client.say(wire.publish(topic, b"21.5", 1, 1 + number, retain=retain))


def test_a_shard_tells_of_its_process_and_of_what_it_accepts(shard: Shard) -> None:
    Client(shard, "c", 5)
    (row,) = ask(shard, "shards").shards
    assert (row.connected, row.sessions, row.ready, row.accepting, row.draining) == (1, 1, True, True, False)
    shard.parts.admission.free_bytes_min = 1
    shard.parts.admission.free(0)
    (row,) = ask(shard, "shards").shards
    assert not row.accepting, "a full disk"


def test_partitions_segments_and_listeners_are_listed(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "t", "u")
    rows = {row.stream: row for row in ask(shard, "partitions").partitions}
    assert rows["main"].next_lsn == 2 and rows["main"].last_time_us == shard.now_us and rows["main"].bytes > 0
    (segment,) = ask(shard, "segments", stream="main").segments
    assert (segment.base_lsn, segment.end_lsn, segment.sealed) == (0, None, False)
    (listener,) = ask(shard, "listeners").listeners
    assert (listener.listener, listener.connected) == (0, 1)


def test_a_client_in_detail_has_subscriptions_places_and_what_is_in_flight(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t/#", 1)]))
    publish(shard, Client(shard, "p", 5), "t/1", "t/2")
    shard.parts.consumers.begin()
    found = ask(shard, "client", client="c")
    assert found.found and found.client.bytes_in > 0 and found.client.bytes_out > 0
    assert [(row.filter, row.kind, row.qos, row.behind_records) for row in found.subscriptions] == [
        ("t/#", "live", 1, 0)
    ]
    assert [(row.packet_id, row.waits_for) for row in found.in_flight] == [(1, "PUBACK"), (2, "PUBACK")]
    client.say(wire.disconnect())
    publish(shard, Client(shard, "q", 5), "t/3")
    away = ask(shard, "client", client="c")
    assert not away.client.connected and away.expires_seconds == 1_000_000
    assert away.subscriptions[0].behind_records == 1
    assert not ask(shard, "client", client="nobody").found


def test_the_topic_tree_is_told_level_by_level(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "plant/1/t", "plant/1/p", "plant/2/t", "other/x", "plant")
    top = ask(shard, "tree").levels
    assert [(row.level, row.is_topic, row.topics, row.records) for row in top] == [
        ("other", False, 1, 1), ("plant", True, 4, 4),
    ]  # fmt: skip
    below = ask(shard, "tree", prefix="plant").levels
    assert [(row.prefix, row.topics) for row in below] == [("plant/1", 2), ("plant/2", 1)]
    page = ask(shard, "tree", prefix="plant", offset=1, limit=1)
    assert [row.level for row in page.levels] == ["2"] and page.left_out == 1


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


def test_shared_groups_have_their_members_and_their_lag(shard: Shard) -> None:
    member = Client(shard, "m", 5, properties=LASTING)
    member.say(wire.subscribe(1, [("$share/g/t", 1)]))
    (row,) = ask(shard, "groups").groups
    assert (row.group, row.filter, row.members, row.clients, row.behind_records) == (
        "$share/g/t",
        "t",
        1,
        ["m"],
        0,
    )
    member.say(wire.disconnect())
    publish(shard, Client(shard, "p", 5), "t", "t")
    (row,) = ask(shard, "groups").groups
    assert row.behind_records == 2
    assert ask(shard, "groups", client="other*").groups == []


def test_pages_of_clients_follow_each_other(shard: Shard) -> None:
    for n in range(5):
        Client(shard, f"c{n}", 5)
    first = ask(shard, "clients", limit=2)
    assert [row.client_id for row in first.clients] == ["c0", "c1"] and first.left_out == 3
    assert [row.client_id for row in ask(shard, "clients", limit=2, offset=4).clients] == ["c4"]
    assert len(ask(shard, "clients", sort="bytes").clients) == 5


def test_figures_have_counters_and_histograms(shard: Shard) -> None:
    subscriber = Client(shard, "s", 5)
    subscriber.say(wire.subscribe(1, [("t", 0)]))
    publish(shard, Client(shard, "p", 5), "t", "t", "t")
    (figures,) = ask(shard, "metrics").shards
    assert figures.counters["messages_published"] == 3 and figures.gauges["connected"] == 2
    assert sum(figures.histograms["publish_ack"].counts) == 3
    assert sum(figures.histograms["publish_delivery"].counts) == 3
    assert sum(figures.histograms["log_write"].counts) >= 1
    assert sum(figures.histograms["turn"].counts) > 3
    assert figures.undelivered["expired"] == 0 and {p.stream for p in figures.partitions} == {
        "main",
        "other",
    }
