"""A log of sensor readings, each another, in sealed segments: what exporting and reading history are measured on."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.table.spark_log import CHUNK_ROWS, START_US, chunks_of
from commitlog import OpenOptions, Partition, RealFiles, StoreLayout, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS

DIGITS = b"????"  # drawn anew for each message
PAYLOAD = b'{"temperature": 2%s, "humidity": 4%s, "seq": 12345678, "unit": "thousandths"}' % (DIGITS, DIGITS)


class Template:
    """A chunk of readings of some topics, whose digits are drawn anew each time."""

    def __init__(self, partition: Partition, first_topic: int) -> None:
        self.rows, whole, self.flags = chunks_of(partition, PAYLOAD, first_topic=first_topic)
        self._frames = np.frombuffer(whole, np.uint8)
        starts = np.array(list(found(whole, DIGITS)))
        self._at = (starts[:, None] + np.arange(len(DIGITS))).ravel()

    def frames(self, random: np.random.Generator) -> bytes:
        made = self._frames.copy()

        made[self._at] = random.integers(48, 58, len(self._at), np.uint8)
        return made.tobytes()


def found(whole: bytes, word: bytes) -> Any:
    at = whole.find(word)
    while at >= 0:
        yield at
        at = whole.find(word, at + len(word))


def write(root: str, records: int, topics: int, *, segment_bytes_max: int = 64 << 20) -> None:
    """A log of one partition, all of it in finished segments but the last."""
    store = open_store(
        RealFiles(),
        root,
        StoreLayout([StreamSpec("main", ("#",), 1, "process", segment_bytes_max=segment_bytes_max)], lambda f, t: True),
        OpenOptions(START_US, hot_bytes_max=0),
        holder="pid 4194304\n",
    )
    partition, random = store.own[0], np.random.default_rng(7)
    templates = [Template(partition, first) for first in range(0, topics, CHUNK_ROWS)]
    for n in range(records // CHUNK_ROWS):
        template = templates[n % len(templates)]
        frames = template.frames(random)
        partition.append(bytearray(template.rows), frames, CHUNK_ROWS, template.flags | FLAG_QOS, START_US + n)
        group = partition.take_group()
        if group is not None:
            group.run()
            partition.complete(group)
        while (job := partition.take_seal_job()) is not None:
            job.run()
