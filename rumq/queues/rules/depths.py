"""How many messages a channel has not consumed: an estimate from marks in the log and from where its group stands.

A *mark* says which number a topic's next message has at an lsn; what is between two marks is counted from the earlier
one, so the estimate errs upwards, by a chunk. docs/reference/queues.md, "Bounds". No files, no clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rumq.queues.rules.names import split_topic

MARKS_MAX = 256  # of a topic; of more every second one is left out


class SeenRecords(NamedTuple):
    """Records of one topic in one chunk. first, stop: their numbers from 0; size: their bytes, about"""

    topic: str
    partition: str
    lsn: int
    time_us: int
    first: int
    stop: int
    size: int


class Place(NamedTuple):
    """Where a group stands. lsns: by partition, of those where it has not handed out everything

    returned: partition, first lsn and the one behind the last, of what it has to hand out again"""

    lsns: Mapping[str, int]
    returned: Sequence[tuple[str, int, int]] = ()


class Depth(NamedTuple):
    """oldest_us: of the oldest message, about; 0: there is none"""

    records: int = 0
    size: int = 0
    oldest_us: int = 0


class TopicMarks:
    """stop: number of the next message, from 0"""

    __slots__ = ("_firsts", "_lsns", "_sizes", "_times", "partition", "size", "stop")

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self._lsns: list[int] = []
        self._firsts: list[int] = []
        self._times: list[int] = []
        self._sizes: list[int] = []  # bytes before the mark
        self.stop = self.size = 0

    def __len__(self) -> int:
        return len(self._lsns)

    def add(self, seen: SeenRecords) -> None:
        if self._lsns and seen.lsn <= self._lsns[-1]:
            return
        self._lsns.append(seen.lsn)
        self._firsts.append(seen.first)
        self._times.append(seen.time_us)
        self._sizes.append(self.size)
        self.stop = seen.stop
        self.size += seen.size
        if len(self._lsns) > MARKS_MAX:
            for each in (self._lsns, self._firsts, self._times, self._sizes):
                del each[1:-1:2]

    def since(self, lsn: int, time_us: int) -> Depth:
        """What is at or behind an lsn, and came at or after a time."""
        at = max(bisect_right(self._lsns, lsn) - 1, bisect_right(self._times, time_us) - 1, 0)
        if not self._lsns or (at == len(self._lsns) - 1 and self._times[at] < time_us):
            return Depth()
        records = self.stop - self._firsts[at]
        return Depth(records, self.size - self._sizes[at], self._times[at]) if records else Depth()

    def between(self, lsn: int, stop_lsn: int, time_us: int) -> Depth:
        """Of these lsns, of what came at or after a time: at most so many."""
        found = self.since(lsn, time_us)
        end = bisect_left(self._lsns, stop_lsn)
        if end < len(self._lsns):
            behind = self.stop - self._firsts[end], self.size - self._sizes[end]
            found = Depth(max(0, found.records - behind[0]), max(0, found.size - behind[1]), found.oldest_us)
        if found.records <= stop_lsn - lsn:
            return found if found.records else Depth()
        return Depth(stop_lsn - lsn, found.size * (stop_lsn - lsn) // found.records, found.oldest_us)


class Depths:
    """Of all queues. unseen: messages pushed here that no mark counts yet, by label"""

    def __init__(self) -> None:
        self._topics: defaultdict[str, dict[str, TopicMarks]] = defaultdict(dict)  # label -> topic -> marks
        self._places: Mapping[str, Place] = {}
        self._ends: dict[str, int] = {}
        self.unseen: Counter[str] = Counter()

    def see(self, seen: Iterable[SeenRecords], ends: Mapping[str, int]) -> None:
        """ends: the lsn behind the last record of each partition that was looked at"""
        self._ends.update(ends)
        for each in seen:
            label, topic = split_topic(each.topic)
            known = self._topics[label].get(topic)
            if known is None or known.partition != each.partition:
                known = self._topics[label][topic] = TopicMarks(each.partition)
            known.add(each)

    def put_places(self, places: Mapping[str, Place]) -> None:
        """places: of all channels that have something to hand out, by id"""
        self._places = places

    def forget(self, label: str) -> None:
        self._topics.pop(label, None)
        self.unseen.pop(label, None)

    def of_channel(self, channel_id: str, label: str, topic: str | None, since_us: int) -> Depth:
        """since_us: what came before is nobody's any more. Without `unseen`"""
        place = self._places.get(channel_id)
        if place is None:
            return Depth()
        marks = self._topics.get(label, {})
        chosen = list(marks.values()) if topic is None else [marks[topic]] if topic in marks else []
        found = [each.since(place.lsns[each.partition], since_us) for each in chosen if self._is_behind(place, each)]
        for partition, first, stop in place.returned:
            found += [each.between(first, stop, since_us) for each in chosen if each.partition == partition]
        return summed(found)

    def _is_behind(self, place: Place, marks: TopicMarks) -> bool:
        lsn = place.lsns.get(marks.partition)
        return lsn is not None and lsn < self._ends.get(marks.partition, 0)

    def of_queue(self, label: str, since_us: int) -> Depth:
        """All messages that came since then, whoever has had them."""
        return summed(each.since(0, since_us) for each in self._topics.get(label, {}).values())

    def topics(self, label: str) -> dict[str, int]:
        """The topics that messages were seen of, and how many each has had so far."""
        return {topic: each.stop for topic, each in self._topics.get(label, {}).items()}


def summed(depths: Iterable[Depth]) -> Depth:
    records = size = oldest_us = 0
    for each in depths:
        records += each.records
        size += each.size
        if each.oldest_us:
            oldest_us = min(oldest_us or each.oldest_us, each.oldest_us)
    return Depth(records, size, oldest_us)
