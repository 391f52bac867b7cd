"""The answers of several shards are one: rows of one thing are added, pages are cut once, the rest is kept."""

from typing import Any

import pytest

from rumq.admin.merging import merged
from rumq.admin.operations import OPERATIONS, RequestRefused, request_of


def merge(question: str, *replies: dict[str, Any], **more: Any) -> Any:
    return merged(OPERATIONS[question], request_of({"ask": question, **more})[1], list(replies))


def group(name: str, **more: Any) -> dict[str, Any]:
    row = {
        "group": name,
        "filter": "t",
        "members": 0,
        "behind_records": 0,
        "returned_records": 0,
        "clients": [],
    }
    return {**row, **more}


def test_a_group_with_members_in_several_shards_is_one_row() -> None:
    home = group("$share/g/t", members=1, behind_records=7, returned_records=2, clients=["b"])
    away = group("$share/g/t", members=2, clients=["a", "c"])
    answer = merge("groups", {"groups": [home, group("$share/h/t")], "left_out": 0}, {"groups": [away], "left_out": 0})
    first, second = answer.groups
    assert (first.members, first.behind_records, first.returned_records) == (3, 7, 2)
    assert first.clients == ["a", "b", "c"] and second.group == "$share/h/t" and answer.left_out == 0


def test_pages_of_groups_are_cut_after_they_are_joined() -> None:
    reply = {"groups": [group("a"), group("b")], "left_out": 1}
    answer = merge("groups", reply, reply, offset=1, limit=1)
    assert [row.group for row in answer.groups] == ["b"] and answer.left_out == 2


def level(name: str, topics: int, *, is_topic: bool = False) -> dict[str, Any]:
    return {"level": name, "prefix": name, "is_topic": is_topic, "topics": topics, "records": 10 * topics}


def test_levels_with_topics_in_several_shards_are_one_row() -> None:
    one = {"levels": [level("a", 1), level("b", 1)], "left_out": 0}
    other = {"levels": [level("a", 2, is_topic=True)], "left_out": 0}
    rows = merge("tree", one, other).levels
    assert [(row.level, row.topics, row.records, row.is_topic) for row in rows] == [
        ("a", 3, 30, True), ("b", 1, 10, False),
    ]  # fmt: skip


def test_a_ban_is_one_row_for_all_shards() -> None:
    ban = {"kind": "client", "name": "c", "seconds": 9.0, "refused": 1}
    other = {**ban, "seconds": 9.5, "refused": 2}
    (row,) = merge("bans", {"bans": [ban]}, {"bans": [other]}).bans
    assert (row.seconds, row.refused) == (9.5, 3)
    user = {**ban, "kind": "user"}
    assert len(merge("bans", {"bans": [ban]}, {"bans": [user]}).bans) == 2, "a user of that name is another"


def test_listeners_are_joined_by_number() -> None:
    row = {"listener": 1, "name": "localhost:1", "mount_point": "", "connections_max": 5, "connected": 2}
    first = {**row, "listener": 0, "name": "localhost:0"}
    found = merge("listeners", {"listeners": [row, first]}, {"listeners": [first, row]}).listeners
    assert [(each.listener, each.connected, each.connections_max) for each in found] == [(0, 4, 5), (1, 4, 5)]


def test_what_one_shard_refuses_is_refused() -> None:
    with pytest.raises(RequestRefused, match="no such place"):
        merge("reset", {"done": 0}, {"error": "no such place"}, client="c", start="earliest")


def test_actions_are_added_and_the_first_reason_is_kept() -> None:
    answer = merge("reset", {"done": 1, "why": ""}, {"done": 2, "why": "shared"}, client="c", start="earliest")
    assert (answer.done, answer.why) == (3, "shared")
