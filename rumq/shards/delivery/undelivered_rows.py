"""Rows of a chunk that a reader passed without delivery: expired, too large, not permitted; for the drop counters.

Records that a socket returns come a second time and are counted once. Knows no socket. Cost: none for a chunk
without such rows, else per topic, not per message."""

from __future__ import annotations

from typing import Any

from router.effects import Deliver
from router.kernels import routes as kernel
from router.matching.feed import Feed
from router.readers.reader import Reader
from rumq.mqtt.kernels.fanout import Blob
from rumq.session.state.drop_counters import OTHER_TOPICS, DropCounters, Why

NAMES_A_CHUNK = 256  # topics of denied records that are named, for all readers of a chunk together


class UndeliveredRows:
    def __init__(self, drop_counters: DropCounters, feeds: list[Feed]) -> None:
        self._drop_counters, self._feeds = drop_counters, feeds

    def count(self, effect: Deliver, reader: Reader, blob: Blob, first: int, stop: int) -> None:
        """Count what the reader did not get of the rows first..stop, which do not come again."""
        index, base = effect.partition, effect.chunk.base_lsn
        reasons: tuple[tuple[Why, Any], ...] = (("expired", blob.expired), ("over_limit", blob.too_large))
        for why, rows in reasons:
            for row in rows:
                if not first <= row < stop:
                    continue
                if reader.counted and (index, base + row) in reader.counted:
                    reader.counted.discard((index, base + row))
                    continue
                self._drop_counters.count(why, reader.key, self._topic(effect, row))
        if effect.denied is not None:
            self.count_denied(effect, reader, first, stop)

    def count_denied(self, effect: Deliver, reader: Reader, first: int, stop: int) -> None:
        """Count the rows first..stop that the reader asked for and may not receive."""
        index, chunk = effect.partition, effect.chunk
        if reader.denied_below is None:
            reader.denied_below = {}
        first = max(first, reader.denied_below.get(index, 0) - chunk.base_lsn)
        if first >= stop:
            return
        reader.denied_below[index] = chunk.base_lsn + stop
        names_max = max(1, NAMES_A_CHUNK // len(effect.readers))
        found, rest = kernel.tally(chunk.rows, len(chunk.frames), first, stop, effect.places, effect.denied, names_max)
        names = self._feeds[index].partition.topic_names
        for topic_id, records in found.items():
            self._drop_counters.count("no_permission", reader.key, names[topic_id].decode(), records)
        if rest:
            self._drop_counters.count("no_permission", reader.key, OTHER_TOPICS, rest)

    def _topic(self, effect: Deliver, row: int) -> str:
        words = memoryview(effect.chunk.rows).cast("B").cast("I")
        return str(self._feeds[effect.partition].partition.topic_names[words[row * 8]].decode())
