"""What waits for a session is what its filters match; beyond a bound it is told as at most."""

import pytest

from rumq.shards.admin.queries import waiting
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask, publish


def left(shard: Shard, *filters: str) -> None:
    """A session that has left."""
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [(each, 1) for each in filters]))
    client.say(wire.disconnect())


def counted(shard: Shard) -> tuple[int, int]:
    found = ask(shard, "waiting", client="c")
    return found.messages, found.at_most


def test_only_what_the_filters_match_waits(shard: Shard) -> None:
    left(shard, "a/#", "a/1")
    publish(shard, Client(shard, "p", 5), *(["a/1"] * 3), *(["else"] * 5), "a/2", "else")
    assert ask(shard, "client", client="c").client.behind_records == 10
    assert counted(shard) == (4, 4), "a message that two filters match is one"
    rows = ask(shard, "waiting", client="c").topics
    assert [(row.topic, row.records) for row in rows] == [("a/1", 3), ("a/2", 1)]


def test_beyond_the_bound_all_records_may_match(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    left(shard, "a/#")
    publisher = Client(shard, "p", 5)
    for _ in range(4):
        publish(shard, publisher, "a/1", "else")
        publisher.take()
    monkeypatch.setattr(waiting, "BYTES_MAX", 1)
    messages, at_most = counted(shard)
    assert 1 <= messages < 4 and messages < at_most <= 8


def test_nothing_waits_for_who_has_read_everything_and_nobody_is_not_found(shard: Shard) -> None:
    left(shard, "a/#")
    assert counted(shard) == (0, 0)
    assert not ask(shard, "waiting", client="d").found


def test_what_waits_for_a_group_is_the_groups(shard: Shard) -> None:
    left(shard, "$share/g/a/#")
    publish(shard, Client(shard, "p", 5), "a/1")
    assert counted(shard) == (0, 0)
