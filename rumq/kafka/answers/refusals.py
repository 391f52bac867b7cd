"""What is refused: producers, and where there are none consumer groups, in a sentence where there is room for one.

On a node of a cluster requests of groups are refused with the code that sends clients to the one that coordinates."""

from __future__ import annotations

from typing import Any

from rumq.kafka.protocol.errors import ErrorCode

READ_ONLY = "read-only: publish over MQTT, gRPC or REST"
NO_GROUPS = "consumer groups are not served here: assign partitions, and keep offsets yourself"
REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED  # of all codes the one at which every client stops and says so


def produce(body: dict[str, Any]) -> dict[str, Any] | None:
    """None: the client expects no answer, and the connection's end tells it."""
    if body["acks"] == 0:
        return None
    return {
        "responses": [
            {
                "name": topic["name"],
                "partition_responses": [
                    {
                        "index": each["index"],
                        "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        "error_message": READ_ONLY,
                    }
                    for each in topic["partition_data"]
                ],
            }
            for topic in body["topic_data"]
        ]
    }


def find_coordinator(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    refused = {"error_code": error, "error_message": NO_GROUPS}
    return refused | {"coordinators": [{"key": key, **refused} for key in body["coordinator_keys"]]}


def group(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
    return {"error_code": error}


def offset_commit(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": each["partition_index"], "error_code": error} for each in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ]
    }


def offset_fetch(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": error,
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": number, "error_code": error} for number in topic["partition_indexes"]
                ],
            }
            for topic in body["topics"] or ()
        ],
        "groups": [{"group_id": each["group_id"], "error_code": error} for each in body["groups"]],
    }


def described_groups(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    return {"groups": [{"group_id": name, "error_code": error} for name in body["groups"]]}


def deleted_groups(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    return {"results": [{"group_id": name, "error_code": error} for name in body["groups_names"]]}


def listed_groups(body: dict[str, Any], error: ErrorCode) -> dict[str, Any]:
    """Tools ask all nodes, and add up what they say."""
    return {"groups": []} if error == ErrorCode.NOT_COORDINATOR else {"error_code": error}
