"""The end of the log of queues, as its files have it: how far topics are, and which numbers messages of ours got.

The log records with each message the client id of its publisher, and numbers those of a topic in the order in which the
broker has acknowledged them to it: the n-th acknowledged message of a connection and topic is the n-th record there.
For a thread; docs/reference/log-format.md, "Chunk"."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from commitlog import Gap
from commitlog.chunk import Chunk
from commitlog.read.partition_view import PartitionView
from commitlog.row_layout import FRAME_WORD, PUBLISHER_WORD, ROW_WORDS
from rumq.queues.reading.stored import topic_at
from rumq.queues.rules.depths import SeenRecords
from rumq.queues.rules.names import ROOT, split_topic

BACK_RECORDS_MAX = 1_000_000  # of a partition that are read at the first look
NAMES_MAX = 200_000  # topics of which the name is remembered
OFFSET_WORD, TIME_WORD = 2, 4


class Look(NamedTuple):
    """seen: what came since the last look; own: messages of our publishers, by label

    numbers: of those that are looked for, from 0, by publisher and topic, in their order; ends: of partitions"""

    seen: list[SeenRecords]
    ends: dict[str, int]
    own: Counter[str]
    numbers: defaultdict[tuple[str, str], list[int]]


class LogTail:
    """views: of the partitions of queues; prefix: of our publishers' client ids

    located: of those whose messages are looked for"""

    def __init__(self, views: Callable[[], Sequence[PartitionView]], prefix: str, located: str) -> None:
        self._views, self._prefix, self._located = views, prefix.encode(), located
        self._at: dict[str, int] = {}
        self._names: dict[tuple[str, int], str] = {}

    def look(self, since_us: int) -> Look:
        """since_us: at the first look, what came before counts for nothing. raises: OSError"""
        look = Look([], {}, Counter(), defaultdict(list))
        for view in self._views():
            begin = self._at.get(view.name)
            if begin is None:
                begin = max(view.find_time(since_us), view.end_lsn - BACK_RECORDS_MAX)
            if begin < view.end_lsn:
                publishers = view.publishers(begin, view.end_lsn)
                own = {number: name.decode() for number, name in publishers.items() if name.startswith(self._prefix)}
                for chunk in view.chunks(begin, view.end_lsn):
                    if not isinstance(chunk, Gap):
                        self._take(view.name, chunk, own, look)
            self._at[view.name] = look.ends[view.name] = view.end_lsn
        return look

    def _take(self, partition: str, chunk: Chunk, own: dict[int, str], look: Look) -> None:
        """cost: a few passes over the rows, at C speed; more for rows of our own publishers"""
        words = memoryview(chunk.rows).cast("B").cast("I")
        ids = words[::ROW_WORDS].tolist()
        low, high = words[OFFSET_WORD::ROW_WORDS].tolist(), words[OFFSET_WORD + 1 :: ROW_WORDS].tolist()
        starts = words[FRAME_WORD::ROW_WORDS].tolist()
        offsets = low if not any(high) else [a | b << 32 for a, b in zip(low, high, strict=True)]
        last = dict(zip(ids, offsets, strict=True))
        first = dict(zip(reversed(ids), reversed(offsets), strict=True))
        start = dict(zip(reversed(ids), reversed(starts), strict=True))
        counts = Counter(ids)
        names = {topic_id: self._name(partition, topic_id, chunk, at) for topic_id, at in start.items()}
        for topic_id, offset in first.items():
            name = names[topic_id]
            size = len(chunk.frames) * counts[topic_id] // len(ids)
            if name.startswith(ROOT):
                look.seen.append(
                    SeenRecords(name, partition, chunk.base_lsn, chunk.base_ts, offset, last[topic_id] + 1, size)
                )
        if own:
            publishers = words[PUBLISHER_WORD::ROW_WORDS].tolist()
            for topic_id, offset, publisher in zip(ids, offsets, publishers, strict=True):
                client_id = own.get(publisher)
                if client_id is not None:
                    look.own[split_topic(names[topic_id])[0]] += 1
                    if client_id.startswith(self._located):
                        look.numbers[client_id, names[topic_id]].append(offset)

    def _name(self, partition: str, topic_id: int, chunk: Chunk, start: int) -> str:
        key = partition, topic_id
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            name = self._names[key] = topic_at(memoryview(chunk.frames), start).decode()
        return name
