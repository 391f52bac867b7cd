"""What the operator is told of groups: of all users, in pages, bounded whatever clients call themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from rumq.admin import kafka_groups as k
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.reports import group_report
from rumq.kafka.reports.group_report import GroupReport
from tests.kafka.reports.test_assignment import assignment
from tests.kafka.served import Served, served
from tests.kafka.test_group_server import committing, error_of_commit, joining
from tests.kafka.wire_client import WireClient

BOUNDS = GroupBounds(20, 10, 1 << 22)
END = 300  # of main/g1/p0


def reply(here: Served, asked: k.KafkaQuestion) -> k.KafkaReply:
    return here.on_loop(GroupReport(here.server.door).reply, asked)  # type: ignore[no-any-return]


def groups(here: Served, **asked: Any) -> k.ConsumerGroups:
    return msgspec.json.decode(reply(here, k.FindGroups(**asked)).answer, type=k.ConsumerGroups)


def lag(here: Served, **asked: Any) -> k.GroupLag:
    return msgspec.json.decode(reply(here, k.FindLag(**asked)).answer, type=k.GroupLag)


def members(here: Served, **asked: Any) -> k.GroupMembers:
    return msgspec.json.decode(reply(here, k.FindMembers(**asked)).answer, type=k.GroupMembers)


def take(here: Served, *commits: Commit) -> None:
    assert here.server.door.groups is not None
    here.call(here.server.door.groups.offsets.take, commits)


def commit(user: str, group: str, offset: int, topic: str = "main", partition: int = 0) -> Commit:
    return Commit(user, group, topic, partition, offset, -1, "", 7)


def read(client: WireClient, group: str, assigned: bytes) -> str:
    """A member that is alone, and was assigned so. returns: its id"""
    found = client.ask("JoinGroup", 3, joining(group))
    sync = {"group_id": group, "generation_id": found["generation_id"], "member_id": found["member_id"]}
    client.ask("SyncGroup", 3, sync | {"assignments": [{"member_id": found["member_id"], "assignment": assigned}]})
    return str(found["member_id"])


def test_a_group_is_told_with_its_lag_and_who_reads_what(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        member = read(client, "g", assignment(("main", [0]), ("two", [0]), ("nowhere", [0]), ("main", [77])))
        take(here, commit("", "g", 250), commit("", "g", 5, "gone"))
        assert groups(here).groups == [
            k.ConsumerGroupRow(
                user="", group="g", state="Stable", protocol="range", members=1, partitions=2, lag=END - 250
            )
        ]
        here_is = {"first": 0, "end": END, "client_id": "test"}
        assert [msgspec.to_builtins(each) for each in lag(here, group="g").partitions] == [
            {"topic": "gone", "partition": 0, "committed": 5, "first": None, "end": None, "lag": None,
             "committed_us": 7000, "client_id": ""},
            {"topic": "main", "partition": 0, "committed": 250, "lag": 50, "committed_us": 7000} | here_is,
            {"topic": "two", "partition": 0, "committed": None, "lag": None, "committed_us": None} | here_is,
        ]  # fmt: skip
        [row] = members(here, group="g").members
        assert (row.member_id, row.client_id, row.host) == (member, "test", "127.0.0.1")
        assert row.partitions == ["main/0", "two/0", "nowhere/0", "main/77"]
        assert error_of_commit(client, committing("other", committed_offset=END + 50)) == 0
        assert [each.lag for each in lag(here, group="other").partitions] == [0], "the log went back"


def test_groups_are_found_by_user_and_name_in_pages(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        take(here, *(commit(user, f"g{n}", n) for user in ("", "anna", "ben") for n in range(5)))
        found = groups(here, limit=4, offset=4)
        assert [(each.user, each.group) for each in found.groups] == [
            ("", "g4"), ("anna", "g0"), ("anna", "g1"), ("anna", "g2"),
        ]  # fmt: skip
        assert found.left_out == 7
        assert [each.group for each in groups(here, user="ben", group="g[34]").groups] == ["g3", "g4"]
        assert groups(here, offset=50) == k.ConsumerGroups(groups=[])
        take(here, *(commit("", "g0", n, partition=n) for n in range(6)))
        page = lag(here, group="g0", limit=2, offset=3)
        assert ([each.partition for each in page.partitions], page.left_out) == ([3, 4], 1)


def test_a_group_of_another_user_is_another_one(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        take(here, commit("anna", "g", 1))
        assert lag(here, group="g", user="anna").partitions[0].committed == 1
        assert reply(here, k.FindLag(group="g")).missing == "there is no group g of clients without a login"
        assert reply(here, k.FindMembers(group="g", user="ben")).missing == "there is no group g of user ben"
        assert members(here, group="g", user="anna") == k.GroupMembers(members=[])


def test_an_answer_is_bounded_whatever_clients_call_themselves(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that did not fit are among those that are left out."""
    monkeypatch.setattr(group_report, "PAGE_BYTES_MAX", 2000)
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        client.ask("JoinGroup", 3, joining("long") | {"protocols": [{"name": "n" * 1500, "metadata": b""}]})
        instance = {"group_instance_id": "i" * 30_000}
        client.ask("JoinGroup", 9, joining("static") | instance)
        [row] = members(here, group="static").members
        assert row.instance_id == "i" * 256
        take(here, *(commit("u" * 1200, f"g{n}", n) for n in range(5)))
        found = groups(here, user="u" * 1200)
        assert (len(found.groups), found.left_out) == (1, 4)
        assert [each.group for each in groups(here, user="u" * 1200, offset=1).groups] == ["g1"], "the next page"


def test_a_server_without_groups_says_so(root: str) -> None:
    with served(root) as here:
        assert "serves no groups" in reply(here, k.FindGroups()).refused


def test_other_clients_have_their_turn_while_a_long_page_is_made(root: str) -> None:
    turns: list[int] = []

    async def meanwhile(door: Any) -> None:
        async with trio.open_nursery() as nursery:

            async def count() -> None:
                while True:
                    turns.append(1)
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(count)
            await GroupReport(door).reply(k.FindGroups())
            before = len(turns)
            await GroupReport(door)._groups(door.groups, k.FindGroups())
            assert len(turns) - before >= 50
            nursery.cancel_scope.cancel()

    with served(root, groups=BOUNDS) as here:
        take(here, *(commit("", f"g{n}", n) for n in range(50)))
        here.on_loop(meanwhile, here.server.door)
