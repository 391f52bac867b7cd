"""Which request is answered by what, and what is answered before a login."""

from __future__ import annotations

from typing import Any

from rumq.kafka.answers import commit_answers, group_answers, group_tool_answers, login_answers, refusals
from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.fetch_answers import TopicTables, fetch
from rumq.kafka.answers.offset_answers import list_offsets
from rumq.kafka.answers.topic_answers import describe_cluster, describe_configs, metadata
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.protocol.apis import API_VERSIONS, APIS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.protocol.frames import KafkaRequest, offered

NUMBERS = {api.name: api.key for api in APIS.values()}
BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
WITHOUT_GROUPS = {
    NUMBERS["FindCoordinator"]: refusals.find_coordinator,
    NUMBERS["JoinGroup"]: refusals.group,
    NUMBERS["SyncGroup"]: refusals.group,
    NUMBERS["Heartbeat"]: refusals.group,
    NUMBERS["LeaveGroup"]: refusals.group,
    NUMBERS["OffsetCommit"]: refusals.offset_commit,
    NUMBERS["OffsetFetch"]: refusals.offset_fetch,
    NUMBERS["DescribeGroups"]: refusals.described_groups,
    NUMBERS["ListGroups"]: refusals.listed_groups,
    NUMBERS["DeleteGroups"]: refusals.deleted_groups,
    NUMBERS["OffsetDelete"]: refusals.group,
}


async def answer(client: KafkaClient, tables: TopicTables, request: KafkaRequest) -> dict[str, Any] | None:
    """The body of the answer; None: there is none, and the connection ends.

    raises: KafkaLoginRefused, OSError where the log cannot be read"""
    api, body = request.api, request.body
    if client.caller is None and api not in BEFORE_LOGIN:
        await login_answers.begin_without_login(client)
    if api == API_VERSIONS:
        return offered()
    if api == SASL_HANDSHAKE:
        return login_answers.handshake(client, request.version, body)
    if api == SASL_AUTHENTICATE:
        return await login_answers.authenticate(client, body["auth_bytes"])
    if api == PRODUCE:
        return refusals.produce(body)
    if api in WITHOUT_GROUPS:
        groups, seat = client.door.groups, client.door.seat
        if api == NUMBERS["FindCoordinator"] and seat is not None and not seat.refusal:
            return group_answers.find_coordinator(client, body)
        if groups is None:
            return WITHOUT_GROUPS[api](body, refusals.REFUSED if seat is None else seat.error)
        return await of_groups(client, groups, request)
    if api == NUMBERS["Fetch"]:
        return await fetch(client, tables, request.version, body)
    if api == NUMBERS["Metadata"]:
        return await metadata(client, request.version, body)
    if api == NUMBERS["ListOffsets"]:
        return await list_offsets(client, body)
    if api == NUMBERS["DescribeConfigs"]:
        return describe_configs(client, body)
    assert api == NUMBERS["DescribeCluster"]
    return describe_cluster(client, body)


async def of_groups(client: KafkaClient, groups: GroupService, request: KafkaRequest) -> dict[str, Any]:
    body = request.body
    match APIS[request.api].name:
        case "FindCoordinator":
            return group_answers.find_coordinator(client, body)
        case "JoinGroup":
            return await group_answers.join(client, groups, request)
        case "SyncGroup":
            return await group_answers.sync(client, groups, request)
        case "Heartbeat":
            return group_answers.heartbeat(client, groups, body)
        case "LeaveGroup":
            return group_answers.leave(client, groups, request.version, body)
        case "OffsetCommit":
            return await commit_answers.offset_commit(client, groups, body)
        case "OffsetFetch":
            return await commit_answers.offset_fetch(client, groups, request.version, body)
        case "ListGroups":
            return group_tool_answers.list_groups(client, groups, body)
        case "DescribeGroups":
            return group_tool_answers.describe_groups(client, groups, body)
        case "DeleteGroups":
            return await group_tool_answers.delete_groups(client, groups, body)
    return await group_tool_answers.offset_delete(client, groups, body)


def refused_login(api: int, text: str) -> dict[str, Any] | None:
    """What a client is told before its connection ends; None: its request has no place for it."""
    if api == SASL_AUTHENTICATE:
        return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": text}
    return None
