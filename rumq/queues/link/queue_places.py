"""Where the messages of a queue may lie: partitions and their leaders, asked of every shard. Changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from rumq.admin.answers import Partitions
from rumq.admin.operations import OPERATIONS
from rumq.admin.requests import Nothing
from rumq.admin.rows import PartitionRow
from rumq.errors import RumqError
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.errors import QueuesUnavailable
from rumq.queues.rules.messages import QueueInfo
from rumq.queues.rules.names import DEAD

STREAM, STREAM_OF_DEAD = "queues", "queues-lasting"


class QueuePlaces(NamedTuple):
    """missing: shards that did not answer, with the reason; was_stale: definitions were not known here as they are"""

    queue: QueueInfo
    partitions: list[PartitionRow]
    missing: list[str]
    was_stale: bool


async def places_of(ports: QueuePorts, label: str) -> tuple[list[PartitionRow], list[str]]:
    """Partitions, and what is missing. raises: QueuesUnavailable"""
    wanted = STREAM_OF_DEAD if label.endswith(DEAD) else STREAM
    try:
        answer = await ports.ask(OPERATIONS["partitions"], Nothing())
    except (RumqError, ValueError) as fault:
        raise QueuesUnavailable(f"the shards do not answer: {fault}") from None
    assert isinstance(answer, Partitions)
    found = sorted((each for each in answer.partitions if each.stream == wanted), key=lambda each: each.partition)
    return found, [f"shard {each.shard}: {each.why}" for each in answer.missing]
