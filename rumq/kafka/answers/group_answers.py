"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup and FindCoordinator. Groups are the user's own."""

from __future__ import annotations

from typing import Any

from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import JoinRequest, KafkaGroupKey, Leaver, Sender, SyncRequest
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.protocol.frames import KafkaRequest

GROUP = 0  # of FindCoordinator's key_type; others are of transactions and of shares
NAMES_FIRST, MAY_SKIP, PROTOCOL_TOLD = 4, 9, 7  # versions of JoinGroup


def key_of(client: KafkaClient, body: dict[str, Any]) -> KafkaGroupKey:
    return KafkaGroupKey(client.user, body["group_id"])


def find_coordinator(client: KafkaClient, body: dict[str, Any]) -> dict[str, Any]:
    """This process, of every group; in a cluster that of the node that coordinates."""
    keys = dict.fromkeys(body["coordinator_keys"])
    if body["key_type"] != GROUP:
        refused = {"error_code": ErrorCode.INVALID_REQUEST, "error_message": "there are groups alone, no transactions"}
        return refused | {"coordinators": [{"key": key, **refused} for key in keys]}
    found = coordinator(client)
    return found | {"coordinators": [{"key": key, **found} for key in keys]}


def coordinator(client: KafkaClient) -> dict[str, Any]:
    seat = client.door.seat
    if seat is None:
        return {"node_id": client.door.number, "host": client.advertised.host, "port": client.advertised.port}
    node = seat.nodes.coordinator
    if node is None or seat.nodes.unable:
        return {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE, "error_message": seat.where}
    return {"node_id": node.number, "host": node.host, "port": node.port}


async def join(client: KafkaClient, groups: GroupService, request: KafkaRequest) -> dict[str, Any]:
    body = request.body
    session = body["session_timeout_ms"] / 1000
    rebalance = body["rebalance_timeout_ms"] / 1000
    asked = JoinRequest(
        body["member_id"], body["group_instance_id"], request.client_id, client.peer, session,
        rebalance if rebalance >= 0 else session, body["protocol_type"],
        tuple((each["name"], each["metadata"]) for each in body["protocols"]),
        request.version >= NAMES_FIRST, request.version >= MAY_SKIP,
    )  # fmt: skip
    told = await groups.join(key_of(client, body), client.network, asked)
    return {
        "error_code": told.error,
        "generation_id": told.generation,
        "protocol_type": told.protocol_type,
        "protocol_name": told.protocol if told.protocol or request.version >= PROTOCOL_TOLD else "",
        "leader": told.leader,
        "skip_assignment": told.skips_assignment,
        "member_id": told.member_id,
        "members": [
            {"member_id": each.member_id, "group_instance_id": each.instance_id, "metadata": each.metadata}
            for each in told.members
        ],
    }


async def sync(client: KafkaClient, groups: GroupService, request: KafkaRequest) -> dict[str, Any]:
    body = request.body
    asked = SyncRequest(
        body["member_id"], body["group_instance_id"], body["generation_id"],
        {each["member_id"]: each["assignment"] for each in body["assignments"]},
        body["protocol_type"], body["protocol_name"],
    )  # fmt: skip
    told = await groups.sync(key_of(client, body), asked)
    return {
        "error_code": told.error,
        "protocol_type": told.protocol_type,
        "protocol_name": told.protocol,
        "assignment": told.assignment,
    }


def heartbeat(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    sender = Sender(body["member_id"], body["group_instance_id"], body["generation_id"])
    return {"error_code": groups.heartbeat(key_of(client, body), sender)}


def leave(client: KafkaClient, groups: GroupService, version: int, body: dict[str, Any]) -> dict[str, Any]:
    key = key_of(client, body)
    if version < 3:
        return {"error_code": groups.leave(key, [Leaver(body["member_id"], None)])[0]}
    leavers = [Leaver(each["member_id"], each["group_instance_id"]) for each in body["members"]]
    return {
        "members": [
            {"member_id": each.member_id, "group_instance_id": each.instance_id, "error_code": error}
            for each, error in zip(leavers, groups.leave(key, leavers), strict=True)
        ]
    }
