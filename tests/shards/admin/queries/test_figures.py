"""The figures of a shard: totals are those of now, sessions are counted at most once a second."""

from typing import Any

import pytest

from rumq.shards.admin.queries import figures as module
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish


def test_sessions_are_counted_once_a_second_for_however_many_scrapes(shard: Shard) -> None:
    Client(shard, "a", 5)
    assert ask(shard, "metrics").shards[0].gauges["connected"] == 1
    Client(shard, "b", 5)
    shard.after(0.9)
    (figures,) = ask(shard, "metrics").shards
    assert figures.gauges["connected"] == 1, "as of the last count"
    assert figures.gauges["uptime_seconds"] == pytest.approx(0.9)
    shard.after(0.1)
    (figures,) = ask(shard, "metrics").shards
    assert figures.gauges["connected"] == 2 and list(figures.listeners.values()) == [2]


def test_the_more_sessions_the_more_rarely_they_are_counted(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSIONS_A_SECOND", 1)
    for name in "abc":
        Client(shard, name, 5)
    ask(shard, "metrics")
    Client(shard, "d", 5)
    shard.after(3.9)  # four sessions: four seconds
    assert ask(shard, "metrics").shards[0].gauges["connected"] == 3
    shard.after(0.1)
    assert ask(shard, "metrics").shards[0].gauges["connected"] == 4


def test_scrapes_that_come_while_sessions_are_counted_all_have_an_answer(shard: Shard) -> None:
    answers: list[dict[str, Any]] = []
    for _ in range(3):
        begin = shard.parts.operation.admin.answer({"ask": "metrics"})
        assert callable(begin)
        begin(answers.append)
    assert answers == []
    for _ in range(4):
        shard.settle()
    assert len(answers) == 3


def test_gauges_of_the_operator_are_those_of_now(shard: Shard) -> None:
    ask(shard, "ban", kind="client", name="x")
    ask(shard, "drain")
    gauges = ask(shard, "metrics").shards[0].gauges
    assert (gauges["bans"], gauges["draining"], gauges["ready"], gauges["accepting"]) == (1, 1, 1, 1)


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


def test_deliveries_to_clients_that_take_topic_aliases_are_observed_too(shard: Shard) -> None:
    subscriber = Client(shard, "s", 5, properties=[(wire.Prop.TOPIC_ALIAS_MAXIMUM, 10)])
    subscriber.say(wire.subscribe(1, [("t", 0)]))
    publish(shard, Client(shard, "p", 5), "t", "t", "t")
    (figures,) = ask(shard, "metrics").shards
    assert sum(figures.histograms["publish_delivery"].counts) == 3
