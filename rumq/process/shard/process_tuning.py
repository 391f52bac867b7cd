"""Process-wide tuning of a shard: the C library's memory, the garbage collector, the interpreter lock."""

from __future__ import annotations

import ctypes
import gc
import sys

SWITCH_SECONDS = 0.0001
YOUNG_OBJECTS_MAX, NEVER = 20_000, 2**31 - 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_memory() -> None:
    """Have glibc keep freed memory (mallopt(3)): every turn allocates and frees a batch's buffers, and a fresh page
    costs more than the copy into it. Other C libraries are not changed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 28)
        mallopt(M_TRIM_THRESHOLD, 1 << 28)


def freeze() -> None:
    """Freeze existing objects: they stay, and cycles are rare on the hot path.

    Automatic collections cover young objects only, so that no turn waits long; a turn runs a full collection after many
    ended connections, whose cycles may have accumulated."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, NEVER, NEVER)


def yield_soon() -> None:
    """Shorten the switch interval: worker threads need the interpreter briefly, and the loop must get it back soon."""
    sys.setswitchinterval(SWITCH_SECONDS)
