"""A name that a request repeats is answered once: a small request has no large answer, nor long work for one."""

from __future__ import annotations

from typing import Any

import pytest

from rumq.kafka.answers.named_once import once, partitions_once, topics_once
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.protocol.apis import APIS
from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.served import served
from tests.kafka.test_group_server import committing, error_of_commit, joining
from tests.kafka.wire_client import NUMBERS, WireClient

REPEATS = 300
BOUNDS = GroupBounds(20, 10, 1 << 22)
PART = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 12}
FETCH = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 12, "isolation_level": 0}
MAIN = {"name": "main", "partition_indexes": [0]}


def asked(api: str, repeats: int) -> dict[str, Any]:
    """The body of a request that says each name so often."""
    one = [0] * repeats
    return {
        "Metadata": {"topics": [{"name": "main"} for _ in one]},
        "ListOffsets": {"replica_id": -1, "topics": [
            {"name": "main", "partitions": [{"partition_index": 9, "timestamp": -1}]} for _ in one]},
        "Fetch": FETCH | {"topics": [{"topic": "main", "partitions": [PART]} for _ in one]},
        "FindCoordinator": {"key_type": 0, "coordinator_keys": ["g" for _ in one]},
        "DescribeGroups": {"groups": ["g" for _ in one]},
        "DeleteGroups": {"groups_names": ["g" for _ in one]},
        "OffsetDelete": {"group_id": "kept", "topics": [
            {"name": "main", "partitions": [{"partition_index": 5} for _ in one]} for _ in range(2)]},
        "OffsetFetch": {"groups": [{"group_id": "kept", "topics": [MAIN for _ in one]} for _ in one[:10]]},
        "OffsetFetch 7": {"group_id": "kept", "topics": [
            {"name": "main", "partition_indexes": [0 for _ in one]} for _ in range(2)]},
        "OffsetCommit": committing("other") | {"topics": committing("other")["topics"] * repeats},
        "DescribeConfigs": {"resources": [
            {"resource_type": 2, "resource_name": "main", "configuration_keys": None} for _ in one]},
    }[api]  # fmt: skip


@pytest.mark.parametrize(
    "api",
    [
        "Metadata", "ListOffsets", "Fetch", "FindCoordinator", "DescribeGroups", "DeleteGroups", "OffsetDelete",
        "OffsetFetch", "OffsetFetch 7", "OffsetCommit", "DescribeConfigs",
    ],
)  # fmt: skip
def test_a_repeated_name_is_answered_once(api: str, root: str) -> None:
    name, _, version = api.partition(" ")
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        assert error_of_commit(client, committing("kept", committed_metadata="m" * 4000)) == 0
        large = {"protocols": [{"name": "range", "metadata": b"m" * 500_000}]}
        client.ask("JoinGroup", 3, joining() | large)  # a member of a group that has much to tell
        sizes = []
        for repeats in (1, REPEATS):
            client.send(name, int(version or APIS[NUMBERS[name]].most), asked(api, repeats))
            sizes.append(len(client.frame()))
        assert sizes[0] == sizes[1] > 0


def test_a_partition_that_is_asked_for_twice_has_no_offset(root: str) -> None:
    """For which of its times? Kafka answers INVALID_REQUEST to it, and the others get theirs."""
    parts = [{"partition_index": number, "timestamp": -1} for number in (0, 9, 9)]
    with served(root) as here:
        body = {"replica_id": -1, "topics": [{"name": "main", "partitions": parts}]}
        [found] = WireClient(here.port).ask("ListOffsets", 5, body)["topics"]
        assert [(each["partition_index"], each["error_code"]) for each in found["partitions"]] == [
            (0, 0),
            (9, ErrorCode.INVALID_REQUEST),
        ]


def test_of_an_offset_that_is_committed_twice_the_last_counts(root: str) -> None:
    [topic] = committing("g", committed_offset=5)["topics"]
    [later] = committing("g", committed_offset=3)["topics"]
    with served(root, groups=BOUNDS) as here:
        client = WireClient(here.port)
        assert error_of_commit(client, committing("g") | {"topics": [topic, later]}) == 0
        [found] = client.ask("OffsetFetch", 7, {"group_id": "g", "topics": [MAIN]})["topics"]
        assert [each["committed_offset"] for each in found["partitions"]] == [3]


def test_the_first_of_a_name_is_kept_and_partitions_of_its_repeats_are_joined() -> None:
    assert once([{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2}], "a") == [{"a": 1, "b": 1}, {"a": 2}]
    topics = [
        {"name": "t", "partitions": [1, 2]},
        {"name": "u", "partitions": [1]},
        {"name": "t", "partitions": [2, 3]},
    ]
    joined = topics_once(topics, "name")
    assert joined == [{"name": "t", "partitions": [1, 2, 2, 3]}, {"name": "u", "partitions": [1]}]
    assert partitions_once(joined, lambda number: number)[0]["partitions"] == [1, 2, 3]
    assert topics[0]["partitions"] == [1, 2], "the request stays as it was"
