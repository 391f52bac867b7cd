"""Consecutive records of one partition as arrays: one pass over the row tables, no Python per message.

docs/reference/log-format.md, "Row" and "Frame"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from commitlog import Chunk
from rumq.lake.kernels import walking

ROW = np.dtype(
    [
        ("topic_id", "<u4"), ("frame_pos", "<u4"), ("topic_offset", "<u8"), ("ts_delta", "<u4"),
        ("payload_pos", "<u4"), ("pub_no", "<u4"), ("flags", "<u2"), ("zero", "<u2"),
    ]
)  # fmt: skip
QOS, RETAIN, V5, PROPERTIES = 3, 4, 16, 32
HOUR_US = 3_600_000_000
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordArrays:
    """Records in the order of the log. All arrays have one item per record; positions are bytes of `frames`.

    lsns, topic_offsets, ts (µs since 1970), starts, payloads, ends: int64; topic_ids, publishers: u32; flags: u16
    """

    frames: npt.NDArray[np.uint8]
    lsns: Integers
    topic_ids: npt.NDArray[np.uint32]
    topic_offsets: Integers
    ts: Integers
    publishers: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint16]
    starts: Integers
    payloads: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.lsns)

    def part(self, first: int, stop: int) -> RecordArrays:
        """The records first..stop, by index in the piece."""
        arrays = {name: getattr(self, name)[first:stop] for name in self.__slots__ if name != "frames"}
        return RecordArrays(self.frames, **arrays)

    def hours(self) -> Iterator[tuple[int, RecordArrays]]:
        """(hour since 1970, its records): a part of the piece for each run of one hour."""
        hours = self.ts // HOUR_US
        cuts = [0, *(np.flatnonzero(np.diff(hours)) + 1).tolist(), len(self)]
        for first, stop in pairwise(cuts):
            if stop > first:
                yield int(hours[first]), self.part(first, stop)

    def lsn_digest(self) -> int:
        return lsn_digest(self.lsns)

    def payload_digest(self) -> int:
        return int(walking.digest(self.lsns, self.payloads, self.ends, self.frames))


def joined(chunks: Sequence[Chunk]) -> RecordArrays:
    """Chunks as one piece. chunks: in order, at least one; all their frames together stay below 2 GiB"""
    counts = np.array([chunk.count for chunk in chunks], np.int64)
    sizes = np.array([len(chunk.frames) for chunk in chunks], np.int64)
    rows = np.frombuffer(b"".join(chunk.rows for chunk in chunks), ROW)
    frames = np.frombuffer(b"".join(chunk.frames for chunk in chunks), np.uint8)
    base_lsns = np.array([chunk.base_lsn for chunk in chunks], np.int64)
    base_ts = np.array([chunk.base_ts for chunk in chunks], np.int64)
    within = np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = rows["frame_pos"] + np.repeat(np.cumsum(sizes) - sizes, counts)
    return RecordArrays(
        frames=frames,
        lsns=np.repeat(base_lsns, counts) + within,
        topic_ids=np.ascontiguousarray(rows["topic_id"]),
        topic_offsets=rows["topic_offset"].astype(np.int64),
        ts=np.repeat(base_ts, counts) + rows["ts_delta"],
        publishers=np.ascontiguousarray(rows["pub_no"]),
        flags=np.ascontiguousarray(rows["flags"]),
        starts=starts,
        payloads=starts + rows["payload_pos"],
        ends=np.append(starts[1:], len(frames)),
    )


def lsn_digest(lsns: Integers) -> int:
    """The digest of lsns alone, with empty values. lsns: int64"""
    nothing = np.zeros(len(lsns), np.int64)
    return int(walking.digest(lsns, nothing, nothing, np.zeros(1, np.uint8)))
