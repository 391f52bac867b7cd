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
from rumq.queues.kernels.record_runs import runs_of
from rumq.queues.reading.stored import topic_at
from rumq.queues.rules.depths import DepthSample
from rumq.queues.rules.names import ROOT, split_topic
from rumq.queues.rules.push_ids import Key, Run

BACK_RECORDS_MAX = 1_000_000  # of a partition that are read at the first look
NAMES_MAX = 200_000  # topics of which the name is remembered


class Look(NamedTuple):
    """seen: what came since the last look; own: messages of our publishers, by label

    numbers: runs of those that are looked for, from 0, by publisher and topic, in their order; ends: of partitions"""

    seen: list[DepthSample]
    ends: dict[str, int]
    own: Counter[str]
    numbers: defaultdict[Key, list[Run]]


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
        """cost: one pass over the rows, at C speed; more for each run of one topic and publisher"""
        seen: dict[int, tuple[str, int, int, int]] = {}  # topic id -> name, first number, behind the last, records
        for topic_id, publisher, first, stop, start in runs_of(chunk.rows):
            known = seen.get(topic_id)
            if known is None:
                name = self._name(partition, topic_id, chunk, start)
                seen[topic_id] = name, first, stop, stop - first
            else:
                name = known[0]
                seen[topic_id] = name, known[1], stop, known[3] + stop - first
            client_id = own.get(publisher)
            if client_id is not None:
                look.own[split_topic(name)[0]] += stop - first
                if client_id.startswith(self._located):
                    look.numbers[client_id, name].append((first, stop))
        for name, first, stop, records in seen.values():
            size = len(chunk.frames) * records // chunk.count
            if name.startswith(ROOT):
                look.seen.append(DepthSample(name, partition, chunk.base_lsn, chunk.base_ts, first, stop, size))

    def _name(self, partition: str, topic_id: int, chunk: Chunk, start: int) -> str:
        key = partition, topic_id
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            name = self._names[key] = topic_at(memoryview(chunk.frames), start).decode()
        return name
