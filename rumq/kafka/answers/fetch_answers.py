"""Fetch: records from offsets on, waited for. Without sessions: every request names all of its partitions.

Records are looked at again after each commit; what a client has been told of is never taken back: an offset behind what
this process has read is asked of the broker, before it is called wrong. KIP-227 has sessions."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import trio

from rumq.kafka.answers.connected_client import FoundNothing, KafkaClient
from rumq.kafka.answers.fetch_part import EXAMINED_BYTES_MAX, FetchPart
from rumq.kafka.answers.named_once import partitions_once, topics_once
from rumq.kafka.log.partition_moves import PartitionMoves
from rumq.kafka.log.record_batches import TopicVerdicts
from rumq.kafka.log.served_log import OLD_VIEW_SECONDS, LogPartition
from rumq.kafka.protocol.errors import ErrorCode
from rumq.kafka.topics.topic_catalog import KafkaTopic

WAIT_SECONDS_MAX = 30.0  # of one request
PARTITIONS_MAX = 1_000  # of one request
BYTES_MIN = 1 << 16  # that an answer may have, however many wait to be taken
AGAIN_SECONDS = 0.01  # until the files show what was kept in memory
IN_MEMORY_RECORDS_MAX = 2_000  # that are turned into batches without a thread
UNKNOWN_SESSION = {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND}
Named = tuple[dict[str, Any], list[FetchPart | dict[str, Any]]]


class TopicTables:
    """Verdicts on topics, kept for a connection: by Kafka topic and partition."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], TopicVerdicts] = {}

    def maybe_table(self, client: KafkaClient, topic: KafkaTopic, partition: str) -> TopicVerdicts | None:
        """None: every record is wanted."""
        reader = client.reader
        if reader.wants_all_of(topic):
            return None
        key = topic.name, partition
        if key not in self._kept:
            self._kept[key] = TopicVerdicts(partial(reader.wants, topic))
        return self._kept[key]


async def fetch(client: KafkaClient, tables: TopicTables, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """raises: OSError"""
    if body["session_id"]:
        return UNKNOWN_SESSION
    if sum(len(each["partitions"]) for each in body["topics"]) > PARTITIONS_MAX:
        return {"error_code": ErrorCode.INVALID_REQUEST}
    door = client.door
    door.figures.fetches += 1
    seconds = min(max(0, body["max_wait_ms"]) / 1000, WAIT_SECONDS_MAX)
    if not client.was_parked:  # else views were good enough when it was asked, and now there is something to tell
        await door.log.look(OLD_VIEW_SECONDS)
    topics = partitions_once(topics_once(body["topics"], "topic", "topic_id"), itemgetter("partition"))
    named = [await parts_of(client, tables, asked, by_id=version >= 13) for asked in topics]
    parts = [each for _, found in named for each in found if isinstance(each, FetchPart)]
    client.rotation += 1
    if parts:
        turned = client.rotation % len(parts)
        await Filling(client, parts[turned:] + parts[:turned], body).run(client.asked_at + seconds)
    responses = [
        names | {"partitions": [each if isinstance(each, dict) else answer_of(each) for each in found]}
        for names, found in named
    ]
    door.figures.records += sum(each.batches.records for each in parts)
    door.figures.bytes += sum(each.batches.size for each in parts)
    if parts and len(parts) == sum(len(found) for _, found in named) and all(each.is_empty for each in parts):
        client.found_nothing = FoundNothing(seconds, [each.partition for each in parts])
    return {"responses": responses}


async def parts_of(client: KafkaClient, tables: TopicTables, asked: dict[str, Any], *, by_id: bool) -> Named:
    catalog, log = client.door.catalog, client.door.log
    names = {"topic": asked["topic"], "topic_id": asked["topic_id"]}
    if by_id:
        topic = catalog.find_id(asked["topic_id"], client.reader)
    else:
        topic = catalog.find(asked["topic"], client.reader)
    if isinstance(topic, ErrorCode):
        return names, [{"partition_index": each["partition"], "error_code": topic} for each in asked["partitions"]]
    there = client.door.names_of(topic)
    found: list[FetchPart | dict[str, Any]] = []
    for each in asked["partitions"]:
        number = each["partition"]
        if not 0 <= number < len(there):
            found.append({"partition_index": number, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
            continue
        if there[number] not in log.partitions:  # of a cluster's node that has no copy
            found.append({"partition_index": number, "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER})
            continue
        partition = log.partitions[there[number]]
        part = FetchPart(
            number, each["fetch_offset"], each["partition_max_bytes"], partition,
            tables.maybe_table(client, topic, partition.name), clears=client.door.clears,
        )  # fmt: skip
        part.error = await fault_of(client, partition, part.at)
        found.append(part)
    return names, found


async def fault_of(client: KafkaClient, partition: LogPartition, offset: int) -> ErrorCode:
    if partition.first <= offset <= partition.end:
        return ErrorCode.NONE
    if offset < partition.first:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    # The broker may know of more: a consumer that was told of it must not be sent back to the beginning.
    is_there = await client.door.log.reach(partition, offset)
    if is_there is None:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.NONE if is_there else ErrorCode.OFFSET_OUT_OF_RANGE


def answer_of(part: FetchPart) -> dict[str, Any]:
    if part.error == ErrorCode.NONE:
        part.batches.span(part.at)
    return {
        "partition_index": part.number,
        "error_code": part.error,
        "high_watermark": part.partition.end,
        "last_stable_offset": part.partition.end,
        "log_start_offset": part.partition.first,
        "records": part.batches.parts,
    }


class Filling:
    """Fills the parts of one answer, within what the client asks for and may hold."""

    def __init__(self, client: KafkaClient, parts: list[FetchPart], body: dict[str, Any]) -> None:
        door = client.door
        self._client, self._parts = client, parts
        self._bytes_min = max(1, body["min_bytes"])
        free = max(BYTES_MIN, door.bounds.waiting.free(client.holders))
        self._bytes_max = max(1, min(body["max_bytes"], door.bounds.answer_bytes_max, free))
        self._bytes_min = min(self._bytes_min, self._bytes_max)

    async def run(self, deadline: float) -> None:
        """Until there is enough, something to tell at once, or the time is over. raises: OSError"""
        with PartitionMoves([each.partition for each in self._parts if each.error == ErrorCode.NONE]) as moves:
            while True:
                before = [each.at for each in self._parts]
                await self._fill()
                if self._is_enough() or trio.current_time() >= deadline:
                    return
                if all(each.is_at_end for each in self._parts):
                    for each in self._parts:
                        self._client.door.log.follow(each.partition)
                    await moves.wait(deadline)
                elif before == [each.at for each in self._parts]:
                    await self._client.door.log.look()
                    await moves.wait(min(deadline, trio.current_time() + AGAIN_SECONDS))

    def _is_enough(self) -> bool:
        is_ready = any(each.error != ErrorCode.NONE or each.is_full for each in self._parts)
        return is_ready or sum(each.batches.size for each in self._parts) >= self._bytes_min

    async def _fill(self) -> None:
        waiting = sum(max(0, each.partition.end - each.at) for each in self._parts if not each.is_at_end)
        if not waiting:
            return
        if waiting <= IN_MEMORY_RECORDS_MAX and all(each.is_in_memory for each in self._parts):
            return self._fill_parts()
        async with self._client.door.turns.turn(self._client.network, self._client.user):
            await trio.to_thread.run_sync(self._fill_parts)

    def _fill_parts(self) -> None:
        examined = EXAMINED_BYTES_MAX
        size = sum(each.batches.size for each in self._parts)
        for each in self._parts:
            if size >= self._bytes_max or examined <= 0:
                return
            before = each.batches.size
            examined -= each.fill(before + self._bytes_max - size, examined, self._lost)
            size += each.batches.size - before

    def _lost(self, partition: str, first: int, end: int, why: str) -> None:
        door = self._client.door
        door.figures.lost_records += end - first
        door.event("kafka.gap", partition=partition, first_lsn=first, next_lsn=end, why=why)
