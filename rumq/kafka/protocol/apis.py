"""The table of APIs: number, versions that are offered, since which version lengths are compact, and the messages.

docs/reference/kafka.md has it for people; a test compares them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rumq.kafka.protocol import group_apis as group
from rumq.kafka.protocol import group_tool_apis as tools
from rumq.kafka.protocol import login_and_produce_apis as other
from rumq.kafka.protocol import reading_apis as reading
from rumq.kafka.protocol.fields import NEVER, Codec, Field, codec_of


class KafkaApi(NamedTuple):
    """flexible: the first version with compact lengths and tagged fields"""

    key: int
    name: str
    least: int
    most: int
    flexible: int
    request: tuple[Field, ...]
    answer: tuple[Field, ...]

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible


API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
PRODUCE, FETCH = 0, 1
APIS = {
    api.key: api
    for api in (
        KafkaApi(PRODUCE, "Produce", 3, 8, 9, other.PRODUCE_REQUEST, other.PRODUCE_ANSWER),
        KafkaApi(FETCH, "Fetch", 4, 13, 12, reading.FETCH_REQUEST, reading.FETCH_ANSWER),
        KafkaApi(2, "ListOffsets", 1, 8, 6, reading.LIST_OFFSETS_REQUEST, reading.LIST_OFFSETS_ANSWER),
        KafkaApi(3, "Metadata", 0, 12, 9, reading.METADATA_REQUEST, reading.METADATA_ANSWER),
        KafkaApi(8, "OffsetCommit", 2, 9, 8, group.OFFSET_COMMIT_REQUEST, group.OFFSET_COMMIT_ANSWER),
        KafkaApi(9, "OffsetFetch", 1, 9, 6, group.OFFSET_FETCH_REQUEST, group.OFFSET_FETCH_ANSWER),
        KafkaApi(10, "FindCoordinator", 0, 6, 3, group.FIND_COORDINATOR_REQUEST, group.FIND_COORDINATOR_ANSWER),
        KafkaApi(11, "JoinGroup", 0, 9, 6, group.JOIN_GROUP_REQUEST, group.JOIN_GROUP_ANSWER),
        KafkaApi(12, "Heartbeat", 0, 4, 4, group.HEARTBEAT_REQUEST, group.HEARTBEAT_ANSWER),
        KafkaApi(13, "LeaveGroup", 0, 5, 4, group.LEAVE_GROUP_REQUEST, group.LEAVE_GROUP_ANSWER),
        KafkaApi(14, "SyncGroup", 0, 5, 4, group.SYNC_GROUP_REQUEST, group.SYNC_GROUP_ANSWER),
        KafkaApi(15, "DescribeGroups", 0, 5, 5, tools.DESCRIBE_GROUPS_REQUEST, tools.DESCRIBE_GROUPS_ANSWER),
        KafkaApi(16, "ListGroups", 0, 4, 3, tools.LIST_GROUPS_REQUEST, tools.LIST_GROUPS_ANSWER),
        KafkaApi(42, "DeleteGroups", 0, 2, 2, tools.DELETE_GROUPS_REQUEST, tools.DELETE_GROUPS_ANSWER),
        KafkaApi(47, "OffsetDelete", 0, 0, NEVER, tools.OFFSET_DELETE_REQUEST, tools.OFFSET_DELETE_ANSWER),
        KafkaApi(
            SASL_HANDSHAKE, "SaslHandshake", 0, 1, NEVER, other.SASL_HANDSHAKE_REQUEST, other.SASL_HANDSHAKE_ANSWER
        ),
        KafkaApi(API_VERSIONS, "ApiVersions", 0, 4, 3, reading.API_VERSIONS_REQUEST, reading.API_VERSIONS_ANSWER),
        KafkaApi(32, "DescribeConfigs", 1, 4, 4, reading.DESCRIBE_CONFIGS_REQUEST, reading.DESCRIBE_CONFIGS_ANSWER),
        KafkaApi(
            SASL_AUTHENTICATE,
            "SaslAuthenticate",
            0,
            2,
            2,
            other.SASL_AUTHENTICATE_REQUEST,
            other.SASL_AUTHENTICATE_ANSWER,
        ),
        KafkaApi(60, "DescribeCluster", 0, 0, 0, reading.DESCRIBE_CLUSTER_REQUEST, reading.DESCRIBE_CLUSTER_ANSWER),
    )
}


@lru_cache(maxsize=256)
def request_codec(key: int, version: int) -> Codec:
    api = APIS[key]
    return codec_of(api.request, version, flexible=api.is_flexible(version))


@lru_cache(maxsize=256)
def answer_codec(key: int, version: int) -> Codec:
    api = APIS[key]
    return codec_of(api.answer, version, flexible=api.is_flexible(version))
