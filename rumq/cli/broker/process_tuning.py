"""What a shard asks of its process: the C library's memory, the garbage collector, the interpreter's lock."""

from __future__ import annotations

import ctypes
import gc
import sys

SWITCH_SECONDS = 0.0001
YOUNG_OBJECTS_MAX, NEVER = 20_000, 2**31 - 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_memory() -> None:
    """Have the C library keep what is freed: a batch's buffers come and go with every turn, and each fresh page
    costs more than the copy into it (mallopt(3)). Other C libraries than glibc are left as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 28)
        mallopt(M_TRIM_THRESHOLD, 1 << 28)


def freeze() -> None:
    """What is here now stays: the collector need not look at it again, and cycles are rare on the hot path.

    By itself it looks at young objects only, so that no turn waits long for it: at all others a turn has it look,
    once so many connections have ended that their cycles may have added up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, NEVER, NEVER)


def yield_soon() -> None:
    """Worker threads need the interpreter for moments only; the loop takes it back soon."""
    sys.setswitchinterval(SWITCH_SECONDS)
