"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete: of the groups of the user who asks."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.group_answers import key_of
from rumq.kafka.answers.named_once import partitions_once, topics_once
from rumq.kafka.groups.commit_entries import Forget
from rumq.kafka.groups.group import GroupState
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import KafkaGroupKey, KafkaGroupRow
from rumq.kafka.protocol.errors import ErrorCode

DEAD = "Dead"  # Kafka's state of a group that is not there


def maybe_row(groups: GroupService, key: KafkaGroupKey) -> KafkaGroupRow | None:
    row = groups.coordinator.row(key)
    if row is None and groups.offsets.of(key):
        return KafkaGroupRow(key.group, GroupState.EMPTY.value, "consumer", "")
    return row


def list_groups(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    names = dict.fromkeys([*groups.coordinator.names(client.user), *groups.offsets.names(client.user)])
    rows = [row for name in names if (row := maybe_row(groups, KafkaGroupKey(client.user, name))) is not None]
    wanted = set(body["states_filter"])
    return {
        "groups": [
            {"group_id": row.group, "protocol_type": row.protocol_type, "group_state": row.state}
            for row in rows
            if not wanted or row.state in wanted
        ]
    }


def describe_groups(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    return {"groups": [described(groups, KafkaGroupKey(client.user, name)) for name in dict.fromkeys(body["groups"])]}


def described(groups: GroupService, key: KafkaGroupKey) -> dict[str, Any]:
    row = maybe_row(groups, key)
    if row is None:
        return {"group_id": key.group, "group_state": DEAD}
    return {
        "group_id": row.group,
        "group_state": row.state,
        "protocol_type": row.protocol_type,
        "protocol_data": row.protocol,
        "members": [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "client_id": each.client_id,
                "client_host": f"/{each.host}",
                "member_metadata": each.metadata,
                "member_assignment": each.assignment,
            }
            for each in row.members
        ],
    }


async def delete_groups(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "results": [
            {"group_id": name, "error_code": await groups.forget(KafkaGroupKey(client.user, name))}
            for name in dict.fromkeys(body["groups_names"])
        ]
    }


async def offset_delete(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    key = key_of(client, body)
    if groups.coordinator.has_members(key):
        return {"error_code": ErrorCode.NON_EMPTY_GROUP}
    kept = groups.offsets.of(key)
    if not kept:
        return {"error_code": ErrorCode.GROUP_ID_NOT_FOUND}
    topics = partitions_once(topics_once(body["topics"], "name"), itemgetter("partition_index"))
    places = [(each["name"], part["partition_index"]) for each in topics for part in each["partitions"]]
    error = await groups.forget_some(key, [Forget(*key, *place) for place in places if place in kept])
    return {
        "topics": [
            {
                "name": each["name"],
                "partitions": [
                    {"partition_index": part["partition_index"], "error_code": error} for part in each["partitions"]
                ],
            }
            for each in topics
        ]
    }
