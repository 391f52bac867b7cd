"""What the operator is told of all users' groups: how far each is behind, partition by partition, and who is in it.

In pages that are bounded in rows and bytes; what the server has most of is looked at in a thread. No sockets."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TypeVar

import msgspec
import trio

from rumq.admin import kafka_groups as k
from rumq.kafka.answers.connected_client import KafkaDoor
from rumq.kafka.answers.group_tool_answers import maybe_row
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.committed_offsets import Place
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.groups.messages import KafkaGroupKey, KafkaGroupRow
from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.reports.assignment import Assigned, assigned_to
from rumq.kafka.topics.topic_catalog import partition_name

PAGE_BYTES_MAX = 1 << 20
TEXT_CHARACTERS_MAX = 256  # of names that clients give themselves
PARTITIONS_SHOWN = 20  # of a member
NO_GROUPS = "this Kafka server serves no groups: its event kafka.groups_refused says why"
Row = TypeVar("Row", bound=msgspec.Struct)


class GroupReport:
    def __init__(self, door: KafkaDoor) -> None:
        self._door = door

    async def reply(self, asked: k.KafkaQuestion) -> k.KafkaReply:
        """raises: OSError where the log cannot be read"""
        groups = self._door.groups
        if groups is None:
            return k.KafkaReply(refused=no_groups(self._door))
        await self._door.log.look()
        answer: k.KafkaRows
        if isinstance(asked, k.FindGroups):
            answer = await self._groups(groups, asked)
        else:
            key = KafkaGroupKey(asked.user, asked.group)
            row = maybe_row(groups, key)
            if row is None:
                return k.KafkaReply(missing=f"there is no group {key.group} {whose(key)}")
            if isinstance(asked, k.FindLag):
                answer = await self._lag(groups.offsets.of(key), row, asked)
            else:
                answer = await trio.to_thread.run_sync(members_of, row, asked)
        return k.KafkaReply(answer=msgspec.Raw(msgspec.json.encode(answer)))

    async def _groups(self, groups: GroupService, asked: k.FindGroups) -> k.ConsumerGroups:
        keys = [*groups.coordinator.keys, *groups.offsets.groups]
        keys, left_out = await trio.to_thread.run_sync(keys_of_page, keys, asked)
        rows: list[k.ConsumerGroupRow] = []
        for key in keys:
            row = maybe_row(groups, key)
            if row is None:
                continue  # it has gone meanwhile
            kept = groups.offsets.of(key)
            lags = [lag_of(commit, self._partition(place)) for place, commit in kept.items()]
            rows.append(
                k.ConsumerGroupRow(
                    user=key.user,
                    group=key.group,
                    state=row.state,
                    protocol=row.protocol[:TEXT_CHARACTERS_MAX],
                    members=len(row.members),
                    partitions=len(kept),
                    lag=sum(each for each in lags if each is not None),
                )
            )
            await trio.lowlevel.checkpoint()  # a group may have many offsets, and clients wait
        shown = within_bytes(rows)
        return k.ConsumerGroups(groups=shown, left_out=left_out + len(rows) - len(shown))

    async def _lag(self, kept: dict[Place, Commit], row: KafkaGroupRow, asked: k.FindLag) -> k.GroupLag:
        readers = await trio.to_thread.run_sync(assigned_to, row)
        places = sorted({*kept, *(place for place in readers.readers if self._partition(place) is not None)})
        rows = []
        for place in places[asked.offset : asked.offset + asked.limit]:
            commit, partition = kept.get(place), self._partition(place)
            rows.append(
                k.GroupLagRow(
                    topic=place[0],
                    partition=place[1],
                    committed=None if commit is None else commit.offset,
                    first=None if partition is None else partition.first,
                    end=None if partition is None else partition.end,
                    lag=lag_of(commit, partition),
                    committed_us=None if commit is None else 1000 * commit.at_ms,
                    client_id=readers.readers.get(place, "")[:TEXT_CHARACTERS_MAX],
                )
            )
        rows = within_bytes(rows)
        return k.GroupLag(partitions=rows, left_out=max(0, len(places) - asked.offset - len(rows)))

    def _partition(self, place: Place) -> LogPartition | None:
        """None: there is none: members may be assigned what they like, and streams can go from the settings."""
        topic = self._door.catalog.topics.get(place[0])
        return None if topic is None else self._door.log.partitions.get(partition_name(topic.stream, place[1]))


def no_groups(door: KafkaDoor) -> str:
    """Why there are none here; in a cluster which node to ask."""
    return NO_GROUPS if door.seat is None else door.seat.where


def whose(key: KafkaGroupKey) -> str:
    return f"of user {key.user}" if key.user else "of clients without a login"


def lag_of(commit: Commit | None, partition: LogPartition | None) -> int | None:
    """As Kafka's tools: also of records that are not kept any more, and none in a log that went back."""
    return None if commit is None or partition is None else max(0, partition.end - commit.offset)


def keys_of_page(keys: Iterable[KafkaGroupKey], asked: k.FindGroups) -> tuple[list[KafkaGroupKey], int]:
    """(those of the page, how many follow it)"""
    found = sorted(
        key
        for key in set(keys)
        if (asked.user is None or key.user == asked.user)
        and (asked.group is None or fnmatchcase(key.group, asked.group))
    )
    page = found[asked.offset : asked.offset + asked.limit]
    return page, max(0, len(found) - asked.offset - len(page))


def members_of(group: KafkaGroupRow, asked: k.FindMembers) -> k.GroupMembers:
    assigned: Assigned = assigned_to(group)
    rows = [
        k.GroupMemberRow(
            member_id=each.member_id[:TEXT_CHARACTERS_MAX], client_id=each.client_id[:TEXT_CHARACTERS_MAX],
            host=each.host, instance_id=None if each.instance_id is None else each.instance_id[:TEXT_CHARACTERS_MAX],
            partitions=[
                f"{topic[:TEXT_CHARACTERS_MAX]}/{number}"
                for topic, number in assigned.places.get(each.member_id, ())[:PARTITIONS_SHOWN]
            ],
        )
        for each in group.members[asked.offset : asked.offset + asked.limit]
    ]  # fmt: skip
    shown = within_bytes(rows)
    return k.GroupMembers(members=shown, left_out=max(0, len(group.members) - asked.offset - len(shown)))


def within_bytes(rows: list[Row]) -> list[Row]:
    """The first ones; one at least."""
    left = PAGE_BYTES_MAX
    for number, row in enumerate(rows):
        left -= len(msgspec.json.encode(row))
        if left < 0:
            return rows[: max(1, number)]
    return rows
