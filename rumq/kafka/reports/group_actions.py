"""What the operator does to a group of any user that has no members: its offsets are moved, or it is deleted.

It is done once it is on disk, as what clients commit. A group with members is refused: their next
commit would undo it."""

from __future__ import annotations

import msgspec

from rumq.admin import kafka_groups as k
from rumq.kafka.answers.connected_client import KafkaDoor
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import KafkaGroupKey, Sender
from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.reports.group_report import no_groups, whose

NOBODY = Sender("", None, -1)  # who commits for a group without members
WHY = {
    ErrorCode.INVALID_GROUP_ID: "a group has a name of 1 to 255 bytes",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "kafka.group_bytes_max leaves no room for more offsets",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "many commits are on their way to the file: do it again",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "offsets cannot be written: see the event kafka.commits_failed",
}


async def act(door: KafkaDoor, asked: k.KafkaAction) -> k.KafkaReply:
    """raises: OSError where the log cannot be read"""
    if door.groups is None:
        return k.KafkaReply(refused=no_groups(door))
    key = KafkaGroupKey(asked.user, asked.group)
    if isinstance(asked, k.DeleteGroup):
        return await delete(door.groups, key)
    return await reset(door, door.groups, key, asked)


async def delete(groups: GroupService, key: KafkaGroupKey) -> k.KafkaReply:
    count = len(groups.offsets.of(key))
    return replied(await groups.forget(key), key, count)


async def reset(door: KafkaDoor, groups: GroupService, key: KafkaGroupKey, asked: k.ResetGroup) -> k.KafkaReply:
    await door.log.look()
    topic = door.catalog.topics.get(asked.topic)
    names = [] if topic is None else door.names_of(topic)
    numbers = range(len(names)) if asked.partition is None else [asked.partition]
    if not names or not all(0 <= number < len(names) for number in numbers):
        place = asked.topic if asked.partition is None else f"{asked.topic}/{asked.partition}"
        return k.KafkaReply(missing=f"there is no {place} to read: topics are streams and views")
    if away := [name for number in numbers if (name := names[number]) not in door.log.partitions]:
        return k.KafkaReply(refused=f"this node has no copy of {', '.join(away)}, so it does not know their offsets")
    await door.log.date(names)
    now_ms = door.now_us() // 1000
    commits = []
    for number in numbers:
        partition = door.log.partitions[names[number]]
        at_ms = max(now_ms, partition.newest_ms)
        commits.append(Commit(*key, asked.topic, number, offset_of(asked.to, partition), -1, "", at_ms))
    if (error := groups.may_commit(key, NOBODY)) == ErrorCode.NONE:
        error = await groups.commit(key, commits)
    return replied(error, key, len(commits))


def offset_of(to: str | int, partition: LogPartition) -> int:
    """Within what is kept."""
    if to == "earliest":
        return partition.first
    if to == "latest":
        return partition.end
    return min(max(int(to), partition.first), partition.end)


def replied(error: ErrorCode, key: KafkaGroupKey, done: int) -> k.KafkaReply:
    if error == ErrorCode.NONE:
        return k.KafkaReply(answer=msgspec.Raw(msgspec.json.encode(k.GroupDone(done=done))))
    if error == ErrorCode.GROUP_ID_NOT_FOUND:
        return k.KafkaReply(missing=f"there is no group {key.group} {whose(key)}")
    if error in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.UNKNOWN_MEMBER_ID):
        return k.KafkaReply(conflict=f"group {key.group} has members: stop its consumers first")
    return k.KafkaReply(refused=WHY.get(error, error.name))
