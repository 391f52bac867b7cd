"""Which request is answered by what, and what is answered before a login."""

from __future__ import annotations

from typing import Any

from rumq.kafka.answers import login_answers, refusals
from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.fetch_answers import TopicTables, fetch
from rumq.kafka.answers.offset_answers import list_offsets
from rumq.kafka.answers.topic_answers import describe_cluster, describe_configs, metadata
from rumq.kafka.protocol.apis import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.protocol.frames import KafkaRequest, offered

NUMBERS = {api.name: api.key for api in APIS.values()}
BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
REFUSALS = {
    NUMBERS["FindCoordinator"]: refusals.find_coordinator,
    NUMBERS["JoinGroup"]: refusals.group,
    NUMBERS["SyncGroup"]: refusals.group,
    NUMBERS["Heartbeat"]: refusals.group,
    NUMBERS["LeaveGroup"]: refusals.group,
    NUMBERS["OffsetCommit"]: refusals.offset_commit,
    NUMBERS["OffsetFetch"]: refusals.offset_fetch,
    NUMBERS["Produce"]: refusals.produce,
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
    if (refusal := REFUSALS.get(api)) is not None:
        return refusal(body)
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


def refused_login(api: int, text: str) -> dict[str, Any] | None:
    """What a client is told before its connection ends; None: its request has no place for it."""
    if api == SASL_AUTHENTICATE:
        return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": text}
    return None
