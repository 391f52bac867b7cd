"""ListOffsets: the first offset, the end, or the first record at or after a time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import trio

from commitlog import Gap
from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.named_once import once, topics_once
from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.protocol.errors import ErrorCode

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL = -1, -2, -3, -4
PARTITIONS_MAX = 1_000  # of one request: each may search a file
TIME_US_MAX = 1 << 62
ROW_WORDS, TIME_WORD = 8, 4


async def list_offsets(client: KafkaClient, body: dict[str, Any]) -> dict[str, Any]:
    """raises: OSError"""
    await client.door.log.look()
    left = PARTITIONS_MAX
    topics = []
    for asked in topics_once(body["topics"], "name"):
        left -= len(asked["partitions"])
        topics.append({"name": asked["name"], "partitions": await offsets_of(client, asked, is_refused=left < 0)})
    return {"topics": topics}


async def offsets_of(client: KafkaClient, asked: dict[str, Any], *, is_refused: bool) -> list[dict[str, Any]]:
    topic = client.door.catalog.find(asked["name"], client.reader)
    partitions = client.door.log.partitions
    names = [] if isinstance(topic, ErrorCode) else client.door.names_of(topic)
    found = []
    asked_for = Counter(each["partition_index"] for each in asked["partitions"])
    for each in once(asked["partitions"], "partition_index"):
        number = each["partition_index"]
        answer = {"partition_index": number}
        if is_refused or asked_for[number] > 1:  # for which of its times? Kafka refuses it as well
            answer["error_code"] = ErrorCode.INVALID_REQUEST
        elif isinstance(topic, ErrorCode):
            answer["error_code"] = topic
        elif not 0 <= number < len(names):
            answer["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif names[number] not in partitions:
            answer["error_code"] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            answer |= await offset_at(client, partitions[names[number]], each["timestamp"])
        found.append(answer)
    return found


async def offset_at(client: KafkaClient, partition: LogPartition, time_ms: int) -> dict[str, int]:
    """raises: OSError"""
    if time_ms == LATEST:
        return {"offset": partition.end}
    if time_ms in (EARLIEST, EARLIEST_LOCAL):
        return {"offset": partition.first}
    if time_ms == NEWEST:
        if partition.end <= partition.first:
            return {}
        return {"offset": partition.end - 1, "timestamp": partition.view.last_ts // 1000}
    if time_ms < 0:
        return {"error_code": ErrorCode.INVALID_REQUEST}
    async with client.door.turns.turn(client.network, client.user):
        return await trio.to_thread.run_sync(found_at, partition, time_ms)


def found_at(partition: LogPartition, time_ms: int) -> dict[str, int]:
    """Blocks. raises: OSError"""
    view = partition.view
    lsn = view.find_time(min(time_ms * 1000, TIME_US_MAX))
    for chunk in view.chunks(lsn, lsn + 1):
        if isinstance(chunk, Gap):
            return {"offset": lsn, "timestamp": time_ms}
        words = memoryview(chunk.rows).cast("B").cast("I")
        return {"offset": lsn, "timestamp": (chunk.base_ts + words[TIME_WORD]) // 1000}
    return {}
