"""Slices of a buffer as an Arrow array, copied by Arrow instead of Python."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]  # of bytes or rows


def slices(buffer: Bytes, starts: Positions, ends: Positions) -> pa.Array:
    """The bytes starts[i]..ends[i] of a buffer below 2 GiB as binary. starts, ends: int64, in order, no two overlap."""
    if not len(starts):
        return pa.array([], pa.binary())
    # One array over the buffer alternates spans and the gaps between them; every second item is a span.
    offsets = np.empty(2 * len(starts), np.int32)
    offsets[0::2], offsets[1::2] = starts, ends
    both = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    return both.take(pa.array(np.arange(0, len(offsets), 2, dtype=np.int32)))


def spread(values: pa.Array, at: Positions, count: int) -> pa.Array:
    """An array of `count` items with values[i] at index at[i], null elsewhere."""
    numbers = np.zeros(count, np.int32)
    numbers[at] = np.arange(len(at), dtype=np.int32)
    absent = np.ones(count, bool)
    absent[at] = False
    return values.take(pa.array(numbers, mask=absent))
