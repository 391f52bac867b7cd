"""Requests of groups over a socket, every version of them, and from clients that mean harm."""

from __future__ import annotations

from typing import Any

import pytest

from commitlog import Chunk, RealFiles
from commitlog.read.log_reader import LogReader
from rumq.kafka.figures_socket import figures_of
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.committed_offsets import METADATA_BYTES_MAX
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.protocol.apis import APIS
from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.served import Served, served
from tests.kafka.wire_client import WireClient
from tests.tries import tries

BOUNDS = GroupBounds(20, 10, 1 << 20)
PROTOCOLS = [{"name": "range", "metadata": b"m"}]


def joining(group: str = "g", member_id: str = "", **more: Any) -> dict[str, Any]:
    return {
        "group_id": group, "session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "member_id": member_id,
        "protocol_type": "consumer", "protocols": PROTOCOLS,
    } | more  # fmt: skip


def member(client: WireClient, version: int = 9, group: str = "g") -> tuple[str, int]:
    """Join alone, and be assigned. returns: its id, the generation"""
    found = client.ask("JoinGroup", version, joining(group))
    if found["error_code"] == ErrorCode.MEMBER_ID_REQUIRED:
        found = client.ask("JoinGroup", version, joining(group, found["member_id"]))
    assert found["error_code"] == 0 and found["leader"] == found["member_id"], found
    assert [each["member_id"] for each in found["members"]] == [found["member_id"]]
    assigned = [{"member_id": found["member_id"], "assignment": b"all"}]
    synced = client.ask(
        "SyncGroup", min(version, 5),
        {"group_id": group, "generation_id": found["generation_id"], "member_id": found["member_id"],
         "protocol_type": "consumer", "protocol_name": "range", "assignments": assigned},
    )  # fmt: skip
    assert (synced["error_code"], synced["assignment"]) == (0, b"all")
    return found["member_id"], found["generation_id"]


def committing(group: str, member_id: str = "", generation: int = -1, **partition: Any) -> dict[str, Any]:
    asked = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "note"} | partition
    return {
        "group_id": group, "generation_id_or_member_epoch": generation, "member_id": member_id,
        "topics": [{"name": "main", "partitions": [asked]}],
    }  # fmt: skip


def error_of_commit(client: WireClient, body: dict[str, Any], version: int = 9) -> int:
    [topic] = client.ask("OffsetCommit", version, body)["topics"]
    return int(topic["partitions"][0]["error_code"])


def committed(client: WireClient, version: int, group: str) -> dict[str, Any]:
    asked = [{"name": "main", "partition_indexes": [0]}]
    body = {"group_id": group, "topics": asked, "groups": [{"group_id": group, "topics": asked}]}
    found = client.ask("OffsetFetch", version, body)
    topics = found["topics"] if version < 8 else found["groups"][0]["topics"]
    return dict(topics[0]["partitions"][0])


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_reads_and_leaves_in_every_version(version: int, root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        for asked in range(APIS[10].most + 1):
            found = client.ask("FindCoordinator", asked, {"key": "g", "key_type": 0, "coordinator_keys": ["g"]})
            where = found["coordinators"][0] if asked >= 4 else found
            assert (where["error_code"], where["port"]) == (0, here.port)
        name, generation = member(client, version)
        beat = {"group_id": "g", "generation_id": generation, "member_id": name}
        assert client.ask("Heartbeat", min(version, 4), beat)["error_code"] == 0
        commits = min(max(version, 2), 9)
        assert error_of_commit(client, committing("g", name, generation), commits) == 0
        assert error_of_commit(client, committing("g", name, generation + 1), commits) == ErrorCode.ILLEGAL_GENERATION
        for asked in range(APIS[9].least, APIS[9].most + 1):
            found = committed(client, asked, "g")
            assert (found["committed_offset"], found["metadata"]) == (7, "note")
        for asked in range(APIS[15].most + 1):
            [described] = client.ask("DescribeGroups", asked, {"groups": ["g"]})["groups"]
            assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        leaving = min(version, 5)
        left = client.ask("LeaveGroup", leaving, {"group_id": "g", "member_id": name, "members": [{"member_id": name}]})
        assert left["error_code"] == 0
        assert client.ask("Heartbeat", 4, beat)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
        for asked in range(APIS[16].most + 1):
            assert [each["group_id"] for each in client.ask("ListGroups", asked, {})["groups"]] == ["g"]
        assert client.ask("OffsetDelete", 0, {"group_id": "g", "topics": []})["error_code"] == 0
        for wanted in (0, ErrorCode.GROUP_ID_NOT_FOUND):
            [deleted] = client.ask("DeleteGroups", 2, {"groups_names": ["g"]})["results"]
            assert deleted["error_code"] == wanted
        assert committed(client, 9, "g")["committed_offset"] == -1


def test_commits_that_are_refused(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        for partition, error in [
            ({"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"committed_offset": -5}, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
            ({"committed_metadata": "m" * (METADATA_BYTES_MAX + 1)}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ]:
            assert error_of_commit(client, committing("g", **partition)) == error
        unknown = committing("g") | {"topics": [{"name": "x", "partitions": [{"partition_index": 0,
                                                                             "committed_offset": 1}]}]}  # fmt: skip
        assert error_of_commit(client, unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        name, generation = member(client)
        assert error_of_commit(client, committing("g")) == ErrorCode.UNKNOWN_MEMBER_ID
        [busy] = client.ask("DeleteGroups", 2, {"groups_names": ["g"]})["results"]
        assert busy["error_code"] == ErrorCode.NON_EMPTY_GROUP
        assert client.ask("OffsetDelete", 0, {"group_id": "g", "topics": []})["error_code"] == ErrorCode.NON_EMPTY_GROUP
        assert error_of_commit(client, committing("g", name, generation)) == 0
        figures = here.call(figures_of, here.server)
        assert (figures.groups, figures.group_members, figures.commits) == (1, 1, 1)


def fills_the_bounds(here: Served, count: int) -> int:
    """Groups of one network; how many were let in."""
    taken = 0
    for number in range(count):
        client = WireClient(here.port)
        found = client.ask("JoinGroup", 9, joining(f"g{number}"))
        taken += found["error_code"] == ErrorCode.MEMBER_ID_REQUIRED
        client.close()
    return taken


def test_groups_without_end_stop_at_half_of_the_bound_and_nobody_else_notices(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        name, generation = member(client, group="mine")
        assert fills_the_bounds(here, 60) == BOUNDS.groups // 2 - 1
        beat = {"group_id": "mine", "generation_id": generation, "member_id": name}
        assert client.ask("Heartbeat", 4, beat)["error_code"] == 0
        assert error_of_commit(client, committing("mine", name, generation)) == 0


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"group_id": "g" * 32_000}, ErrorCode.INVALID_GROUP_ID),
        ({"protocols": [{"name": "range", "metadata": b"m" * 700_000}]}, ErrorCode.GROUP_MAX_SIZE_REACHED),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": -1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "invented"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_that_ask_too_much_are_answered(more: dict[str, Any], error: ErrorCode, root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        client.ask("ListGroups", 4, {})  # until a login frames are small
        assert client.ask("JoinGroup", 9, joining() | more)["error_code"] == error
        assert here.server.door.groups is not None and here.server.door.groups.coordinator.count == 0
        member(client)


def test_who_leaves_while_it_waits_is_forgotten_and_the_group_goes_on(root: str) -> None:
    """Its connection ends in the middle of a join; nothing of it stays."""
    with served(root, groups=BOUNDS) as here:
        door = here.server.door
        assert door.groups is not None
        coordinator = door.groups.coordinator
        for number in range(30):
            client = WireClient(here.port)
            client.send("JoinGroup", 3, joining(f"g{number}", session_timeout_ms=3000, rebalance_timeout_ms=1000))
            client.close()
        assert any(here.call(lambda: coordinator.count) == BOUNDS.groups // 2 for _ in tries())
        assert any(here.call(lambda: coordinator.count) == 0 for _ in tries()), "sessions end by themselves"
        member(WireClient(here.port))


class Broker:
    """Says how far everything is committed."""

    def __init__(self, end: int) -> None:
        self.end = end

    async def ask(self, names: set[str]) -> dict[str, int]:
        return dict.fromkeys(names, self.end)


def test_offsets_of_a_log_that_went_back_are_where_it_is_as_it_was(root: str) -> None:
    """A loss of power, or a restore: what is there now came after the commit, or is yet to come."""
    view = next(view for view in LogReader(RealFiles(), root).partitions() if view.name == "main/g1/p0")
    chunks = [each for each in view.chunks(0, 300) if isinstance(each, Chunk)]
    last, middle = chunks[-1], chunks[len(chunks) // 2]
    now_us = [last.base_ts + 10_000_000]
    with served(root, groups=BOUNDS, now_us=lambda: now_us[0], committed=Broker(300)) as here:
        client = WireClient(here.port)
        assert error_of_commit(client, committing("g", committed_offset=250)) == 0
        assert committed(client, 9, "g")["committed_offset"] == 250
        assert error_of_commit(client, committing("g", committed_offset=400)) == 0
        assert committed(client, 9, "g")["committed_offset"] == 300, "the log ends there"
        at_ms = middle.base_ts // 1000 - 1
        assert here.server.door.groups is not None
        here.call(here.server.door.groups.offsets.take, [Commit("", "g", "main", 0, 300, -1, "", at_ms)])
        found = committed(client, 9, "g")["committed_offset"]
        assert found == view.find_time(1000 * (at_ms + 1)) < 300, "others are there since"


def test_a_clock_that_is_set_back_repeats_nothing(root: str) -> None:
    """Records that were there already are not taken for newer ones: the log's time goes on from theirs."""
    view = next(view for view in LogReader(RealFiles(), root).partitions() if view.name == "main/g1/p0")
    now_us = view.last_ts - 3600 * 1_000_000
    with served(root, groups=BOUNDS, now_us=lambda: now_us, committed=Broker(300)) as here:
        client = WireClient(here.port)
        assert error_of_commit(client, committing("g", committed_offset=250)) == 0
        assert committed(client, 9, "g")["committed_offset"] == 250
