"""What a client is told on a node of a cluster: which nodes there are, who leads what, and who coordinates groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from rumq.admin import kafka_groups as k
from rumq.cluster.control.records import View
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.nodes.group_seat import GroupSeat
from rumq.kafka.nodes.kafka_nodes import KafkaNodes, numbers_of
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.reports.group_actions import act
from rumq.kafka.reports.group_report import GroupReport
from tests.kafka.nodes.test_group_seat import nobody
from tests.kafka.nodes.views import node, view
from tests.kafka.served import Served, served
from tests.kafka.test_group_server import BOUNDS, committing, joining
from tests.kafka.wire_client import WireClient

NUMBERS = numbers_of({"n1", "n2", "n3"})
PLACE = [{"name": "main", "partitions": [{"partition_index": 0}]}]


@contextmanager
def node_served(root: str, seen: View, *, coordinates: bool = False) -> Iterator[tuple[Served, WireClient]]:
    """The node n1, which has a copy of main/g1/p0 alone."""
    with served(root, groups=BOUNDS if coordinates else None) as here:
        door = here.server.door
        seat = GroupSeat(KafkaNodes("n1", ["main"]), nobody, None, door.event)  # type: ignore[arg-type]
        seat.nodes.take(seen)
        seat.groups, door.seat = door.own_groups, seat
        yield here, WireClient(here.port)


def test_a_client_that_was_given_one_address_finds_the_others(root: str) -> None:
    with node_served(root, view(leaders=("n2", "n1", "n3"))) as (_, client):
        found = client.ask("Metadata", 12, {"topics": None})
        assert {each["node_id"]: (each["host"], each["port"]) for each in found["brokers"]} == {
            number: (f"{name}.example", 9092) for name, number in NUMBERS.items()
        }
        topics = {each["name"]: each["partitions"] for each in found["topics"]}
        assert topics.keys() == {"main", "two", "none"}, "views have the partitions of their stream"
        for partitions in topics.values():
            assert [each["leader_id"] for each in partitions] == [NUMBERS[each] for each in ("n2", "n1", "n3", "n2")]
            assert all(sorted(each["replica_nodes"]) == sorted(NUMBERS.values()) for each in partitions)
        cluster = client.ask("DescribeCluster", 0, {"include_cluster_authorized_operations": True})
        assert {each["broker_id"] for each in cluster["brokers"]} == set(NUMBERS.values())
        assert cluster["controller_id"] == found["controller_id"] == NUMBERS["n1"]
        config = {"resource_type": 4, "resource_name": str(NUMBERS["n1"]), "configuration_keys": None}
        [result] = client.ask("DescribeConfigs", 1, {"resources": [config]})["results"]
        assert result["error_code"] == 0


def test_where_the_leader_serves_nobody_a_copy_here_is_read(root: str) -> None:
    alone = view(node("n1"), node("n2", kafka=""), node("n3", kafka=""), leaders=("n2", "n1", "n3"))
    with node_served(root, alone) as (_, client):
        [topic] = client.ask("Metadata", 12, {"topics": [{"name": "main"}]})["topics"]
        assert [(each["leader_id"], each["error_code"]) for each in topic["partitions"]] == [
            (NUMBERS["n1"], 0), (NUMBERS["n1"], 0), (-1, ErrorCode.LEADER_NOT_AVAILABLE),
            (-1, ErrorCode.LEADER_NOT_AVAILABLE),
        ]  # fmt: skip


def test_before_the_agent_has_said_anything_there_is_this_node(root: str) -> None:
    with node_served(root, view(node("n1", kafka=""), layout={})) as (here, client):
        found = client.ask("Metadata", 12, {"topics": [{"name": "main"}]})
        assert [(each["node_id"], each["port"]) for each in found["brokers"]] == [(NUMBERS["n1"], here.port)]
        assert [each["leader_id"] for each in found["topics"][0]["partitions"]] == [NUMBERS["n1"]]


def test_a_copy_is_read_whoever_leads_and_one_that_is_behind_sends_nobody_to_the_beginning(root: str) -> None:
    with node_served(root, view(leaders=("n2", "n1", "n3"))) as (_, client):
        assert client.fetch("main", 0)["high_watermark"] == 300
        assert client.fetch("main", 301)["error_code"] == ErrorCode.OFFSET_NOT_AVAILABLE
        assert client.fetch("main", 0, partition=1)["error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER, "it has no copy"
        assert client.fetch("main", 0, partition=4)["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        asked = [{"name": "main", "partitions": [{"partition_index": n, "timestamp": -1} for n in (0, 1, 4)]}]
        [topic] = client.ask("ListOffsets", 7, {"replica_id": -1, "topics": asked})["topics"]
        assert [(each["error_code"], each["offset"]) for each in topic["partitions"]] == [
            (0, 300), (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]  # fmt: skip


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_the_coordinator_is_found_from_every_node(version: int, root: str) -> None:
    with node_served(root, view(leaders=("n2", "n1", "n3"))) as (here, client):
        body = {"key": "g", "key_type": 0, "coordinator_keys": ["g", "h"]}

        def found() -> list[dict[str, Any]]:
            answer = client.ask("FindCoordinator", version, body)
            return answer["coordinators"] if version >= 4 else [answer]

        assert {(each["node_id"], each["host"], each["port"]) for each in found()} == {
            (NUMBERS["n2"], "n2.example", 9092)
        }
        for seen in (
            view(leaders=("", "n1", "n3")),
            view(node("n1"), node("n2", kafka=""), leaders=("n2",)),
            view(node("n1"), node("n2", keeps=False)),
        ):
            assert here.server.door.seat is not None
            here.call(here.server.door.seat.see, seen)
            assert {each["error_code"] for each in found()} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def errors(client: WireClient) -> set[int]:
    """Of every request of a group but FindCoordinator and ListGroups."""
    sender = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    syncing = sender | {"protocol_type": None, "protocol_name": None, "assignments": []}
    fetching = [{"name": "main", "partition_indexes": [0]}]
    found = [
        client.ask("JoinGroup", 9, joining()),
        client.ask("SyncGroup", 5, syncing),
        client.ask("Heartbeat", 4, sender),
        client.ask("LeaveGroup", 5, {"group_id": "g", "members": []}),
        client.ask("OffsetDelete", 0, {"group_id": "g", "topics": PLACE}),
        *client.ask("OffsetCommit", 9, committing("g"))["topics"][0]["partitions"],
        *client.ask("OffsetFetch", 9, {"groups": [{"group_id": "g", "topics": fetching}]})["groups"],
        *client.ask("OffsetFetch", 7, {"group_id": "g", "topics": fetching})["topics"][0]["partitions"],
        *client.ask("DescribeGroups", 5, {"groups": ["g"]})["groups"],
        *client.ask("DeleteGroups", 2, {"groups_names": ["g"]})["results"],
    ]
    return {each["error_code"] for each in found}


def test_groups_elsewhere_are_not_coordinated_here(root: str) -> None:
    with node_served(root, view(leaders=("n2", "n1", "n3"))) as (here, client):
        assert errors(client) == {ErrorCode.NOT_COORDINATOR}
        listed = client.ask("ListGroups", 4, {"states_filter": []})
        assert (listed["error_code"], listed["groups"]) == (0, []), "tools ask all nodes, and add up"
        report = here.on_loop(GroupReport(here.server.door).reply, k.FindGroups())
        action = here.on_loop(act, here.server.door, k.DeleteGroup(group="g"))
        assert report.refused == action.refused == "node n2 coordinates consumer groups: ask there"


def test_a_node_that_takes_groups_over_has_clients_ask_again(root: str) -> None:
    with node_served(root, view(leaders=("n1",))) as (_, client):
        assert errors(client) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        listed = client.ask("ListGroups", 4, {"states_filter": []})
        assert listed["error_code"] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_offsets_are_told_while_no_other_node_can_have_newer_ones(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And as they were committed: the clock of another leader says nothing about the log."""
    is_current = [True]

    async def said(groups: GroupService) -> bool:
        await trio.lowlevel.checkpoint()
        return is_current[0]

    monkeypatch.setattr(GroupService, "is_current", said)
    fetching = {"groups": [{"group_id": "g", "topics": [{"name": "main", "partition_indexes": [0, 1]}]}]}
    with node_served(root, view(leaders=("n1",)), coordinates=True) as (_, client):
        for number, offset in ((0, 290), (1, 7)):
            body = committing("g", partition_index=number, committed_offset=offset)
            assert client.ask("OffsetCommit", 9, body)["topics"][0]["partitions"][0]["error_code"] == 0
        [group] = client.ask("OffsetFetch", 9, fetching)["groups"]
        assert [each["committed_offset"] for each in group["topics"][0]["partitions"]] == [290, 7]
        is_current[0] = False
        [group] = client.ask("OffsetFetch", 9, fetching)["groups"]
        assert group["error_code"] == ErrorCode.NOT_COORDINATOR


def test_a_group_is_moved_only_where_its_partitions_are_known(root: str) -> None:
    with node_served(root, view(leaders=("n1",)), coordinates=True) as (here, _):
        asked = k.ResetGroup(group="g", topic="main", to="earliest")
        assert "no copy of main/g1/p1" in here.on_loop(act, here.server.door, asked).refused
        done = here.on_loop(act, here.server.door, k.ResetGroup(group="g", topic="main", partition=0, to="earliest"))
        assert not done.refused
