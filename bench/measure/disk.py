"""How long the disk takes for one write and its fdatasync: what no durable broker can be faster than."""

import os
import tempfile
import time
from array import array

WRITE_BYTES = 4096
WRITES = 200


def fdatasync_ns(folder: str, writes: int = WRITES) -> bytes:
    """Times of `writes` of 4 KiB each, each followed by fdatasync(2), packed u64.

    The file has its size and its zeros before the first one, so that no sync has metadata to write: the fastest
    that the disk can be. folder: on the file system that brokers write to
    """
    data, took = os.urandom(WRITE_BYTES), array("Q")
    with tempfile.TemporaryFile(dir=folder) as file:
        descriptor = file.fileno()
        os.pwrite(descriptor, bytes(WRITE_BYTES * writes), 0)
        os.fsync(descriptor)
        for number in range(writes):
            started_ns = time.monotonic_ns()
            os.pwrite(descriptor, data, number * WRITE_BYTES)
            os.fdatasync(descriptor)
            took.append(time.monotonic_ns() - started_ns)
    return took.tobytes()
