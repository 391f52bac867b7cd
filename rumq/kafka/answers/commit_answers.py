"""OffsetCommit and OffsetFetch, of topics that the user may read."""

from __future__ import annotations

from typing import Any

import trio

from commitlog.read.partition_view import PartitionView
from rumq.kafka.answers import refusals
from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.group_answers import key_of
from rumq.kafka.answers.named_once import once, topics_once
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.committed_offsets import METADATA_BYTES_MAX
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import KafkaGroupKey, Sender
from rumq.kafka.log.served_log import OLD_VIEW_SECONDS, LogPartition
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.topics.topic_catalog import KafkaTopic, partition_name

MANY_GROUPS = 8  # the version of OffsetFetch that asks for several


async def offset_commit(client: KafkaClient, groups: GroupService, body: dict[str, Any]) -> dict[str, Any]:
    """raises: OSError"""
    key = key_of(client, body)
    await client.door.log.look(OLD_VIEW_SECONDS)
    sender = Sender(body["member_id"], body["group_instance_id"], body["generation_id_or_member_epoch"])
    commits: list[Commit] = []
    topics = topics_once(body["topics"], "name")
    there = {topic["name"]: partitions_of(client, topic["name"]) for topic in topics}
    await client.door.log.date([name for names in there.values() if isinstance(names, list) for name in names])
    error = groups.may_commit(key, sender)
    found: list[tuple[str, list[tuple[int, ErrorCode]]]] = []
    for topic in topics:
        last = {each["partition_index"]: each for each in topic["partitions"]}  # of its repeats, as in Kafka
        faults = [(number, faults_of(client, key, topic["name"], there[topic["name"]], each, commits, error))
                  for number, each in last.items()]  # fmt: skip
        found.append((topic["name"], faults))
    written = await groups.commit(key, commits)
    return {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": number, "error_code": fault or written} for number, fault in partitions
                ],
            }
            for name, partitions in found
        ]
    }


def partitions_of(client: KafkaClient, name: str) -> list[str] | ErrorCode:
    """Those of the log; why there are none."""
    topic = client.door.catalog.find(name, client.reader)
    return topic if isinstance(topic, ErrorCode) else client.door.names_of(topic)


def faults_of(
    client: KafkaClient, key: KafkaGroupKey, name: str, there: list[str] | ErrorCode, asked: dict[str, Any],
    commits: list[Commit], error: ErrorCode,
) -> ErrorCode:  # fmt: skip
    """Why an offset is not taken; NONE: it is added to `commits`. there: the topic's partitions"""
    if error != ErrorCode.NONE:
        return error
    if isinstance(there, ErrorCode):
        return there
    number, metadata = asked["partition_index"], asked["committed_metadata"] or ""
    if not 0 <= number < len(there):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(metadata.encode()) > METADATA_BYTES_MAX:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    if asked["committed_offset"] < 0:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    # The log's time where the clock was set back: what is there already did not come after this.
    partition = client.door.log.partitions.get(there[number])  # a node of a cluster need not have a copy
    at_ms = max(client.door.now_us() // 1000, 0 if partition is None else partition.newest_ms)
    commits.append(
        Commit(
            key.user,
            key.group,
            name,
            number,
            asked["committed_offset"],
            asked["committed_leader_epoch"],
            metadata,
            at_ms,
        )
    )
    return ErrorCode.NONE


async def offset_fetch(client: KafkaClient, groups: GroupService, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """raises: OSError"""
    await client.door.log.look()
    if not await groups.is_current():
        return refusals.offset_fetch(body, ErrorCode.NOT_COORDINATOR)
    if version < MANY_GROUPS:
        return {"topics": await committed(client, groups, key_of(client, body), body["topics"])}
    return {
        "groups": [
            {
                "group_id": each["group_id"],
                "topics": await committed(client, groups, key_of(client, each), each["topics"]),
            }
            for each in once(body["groups"], "group_id")
        ]
    }


async def committed(
    client: KafkaClient, groups: GroupService, key: KafkaGroupKey, asked: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """asked: None: all that there are"""
    kept = groups.offsets.of(key)
    wanted: dict[str, list[int]] = {}
    if asked is None:
        for place in kept:
            wanted.setdefault(place[0], []).append(place[1])
    else:
        for each in topics_once(asked, "name", partitions="partition_indexes"):
            wanted[each["name"]] = list(dict.fromkeys(each["partition_indexes"]))
    found = []
    for name, numbers in wanted.items():
        topic = client.door.catalog.find(name, client.reader)
        if not isinstance(topic, ErrorCode):
            partitions = [await committed_in(client, topic, each, kept.get((name, each))) for each in numbers]
            found.append({"name": name, "partitions": partitions})
        elif asked is not None:
            found.append(
                {"name": name, "partitions": [{"partition_index": each, "error_code": topic} for each in numbers]}
            )
    return found


async def committed_in(client: KafkaClient, topic: KafkaTopic, number: int, commit: Commit | None) -> dict[str, Any]:
    if commit is None:
        return {"partition_index": number}
    partition = client.door.log.partitions.get(partition_name(topic.stream, number))
    # In a cluster a majority has what was read, and the clocks of leaders differ: no time says that a log went back.
    if client.door.seat is not None or partition is None:
        offset = commit.offset
    else:
        offset = await still_read(client, partition, commit)
    return {
        "partition_index": number,
        "committed_offset": offset,
        "committed_leader_epoch": commit.leader_epoch,
        "metadata": commit.metadata,
    }


async def still_read(client: KafkaClient, partition: LogPartition, commit: Commit) -> int:
    """Up to where the log is what it was. One that went back, after a loss of power or a restore, has other records at
    these offsets now or soon; the group reads those."""
    if await client.door.log.reach(partition, commit.offset) is False:
        return partition.end
    async with client.door.turns.turn(client.network, client.user):
        return await trio.to_thread.run_sync(first_after, partition.view, commit)


def first_after(view: PartitionView, commit: Commit) -> int:
    """The first record that came after the commit, below its offset. Blocks."""
    newer = view.find_time(1000 * (commit.at_ms + 1))
    return newer if newer < min(commit.offset, view.end_lsn) else commit.offset
