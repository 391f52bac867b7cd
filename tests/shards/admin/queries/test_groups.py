"""Shared groups: their lag, and their members, of whom 100 are named and all are searched."""

import pytest

from rumq.shards.admin.queries import groups
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask, publish


def test_of_many_members_some_are_named_and_all_are_counted_and_searched(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "CLIENTS_MAX", 2)
    for name in "abc":
        Client(shard, name, 5).say(wire.subscribe(1, [("$share/g/t", 1)]))
    (row,) = ask(shard, "groups", client="c").groups
    assert row.members == 3 and len(row.clients) == 2 and "c" not in row.clients
    assert len(ask(shard, "groups", client="[c]*").groups) == 1 and ask(shard, "groups", client="d").groups == []


def test_groups_are_paged_in_order_over_several_turns(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUPS_A_TURN", 2)
    Client(shard, "m", 5).say(wire.subscribe(1, [(f"$share/g/{name}", 1) for name in "dbace"]))
    page = ask(shard, "groups", limit=2, offset=1)
    assert [row.filter for row in page.groups] == ["b", "c"] and page.left_out == 3
    assert [row.filter for row in ask(shard, "groups").groups] == list("abcde")


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
