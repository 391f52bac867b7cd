"""Looks into queues without taking anything: unexpired messages, read from the log's files of this node.

For a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commitlog import Gap
from commitlog.read.partition_view import PartitionView
from rumq.queues.reading.stored import messages_of
from rumq.queues.rules.messages import Delivered

Wants = Callable[[bytes], bool]
CHUNKS_MAX = 20_000  # looked at for one answer
PEEK_BYTES_MAX = 3 << 20  # of one answer: clients of gRPC take 4 MiB


def peek(
    views: Sequence[PartitionView], topic_filter: str, begin_us: int, now_us: int, messages_max: int,
    bytes_max: int = PEEK_BYTES_MAX,
) -> list[Delivered]:  # fmt: skip
    """The oldest ones of a filter without `+`, by time of arrival. begin_us: those that arrived later

    bytes_max: of them, about; one message always fits
    raises: OSError. cost: the log from there on, of every partition of queues, until there are enough"""
    name, is_prefix = topic_filter.removesuffix("#").encode(), topic_filter.endswith("#")

    def wants(topic: bytes) -> bool:
        return topic.startswith(name) if is_prefix else topic == name

    found: list[Delivered] = []
    for view in views:
        found += of_partition(view, wants, begin_us, now_us, messages_max, bytes_max)
    found.sort(key=lambda each: (each.pushed_us, each.id.number))
    return fitting(found[:messages_max], bytes_max)


def fitting(messages: list[Delivered], bytes_max: int) -> list[Delivered]:
    for number, message in enumerate(messages):
        bytes_max -= message.size
        if bytes_max < 0 and number:
            return messages[:number]
    return messages


def of_partition(
    view: PartitionView, wants: Wants, begin_us: int, now_us: int, messages_max: int, bytes_max: int
) -> list[Delivered]:
    found: list[Delivered] = []
    size = 0
    chunks_left = CHUNKS_MAX
    for start, stop in view.spans_of(view.find_time(begin_us), view.end_lsn, wants):
        for chunk in view.chunks(start, stop):
            chunks_left -= 1
            if isinstance(chunk, Gap):
                continue
            more = [each for each in messages_of(chunk, wants, now_us) if each.pushed_us > begin_us]
            found += more
            size += sum(each.size for each in more)
            if len(found) >= messages_max or size > bytes_max or not chunks_left:
                return found
    return found
