"""The thread that writes and syncs without the interpreter's lock, compiled and as Python."""

import errno
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel_forms import forms

SECONDS_MAX = 30.0  # a job that takes longer fails the test


class World:
    """One thread, the eventfd that it writes to, and a file."""

    def __init__(self, kernel: Any, path: Path) -> None:
        self.ended_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.thread = kernel.FlushThread(self.ended_fd)
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)

    def flush(self, data: Any, position: int, fd: int | None = None) -> int:
        self.thread.start(self.fd if fd is None else fd, data, len(data), position)
        while (result := self.thread.maybe_end()) < 0:
            assert select.select([self.ended_fd], [], [], SECONDS_MAX)[0]
            os.eventfd_read(self.ended_fd)
        return int(result)


@pytest.fixture(params=forms("commitlog.kernels.flush_thread"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(request.param, tmp_path / "segment")
    yield world
    os.close(world.ended_fd)
    os.close(world.fd)


def test_bytes_are_written_where_they_belong_one_job_after_the_other(world: World) -> None:
    assert world.flush(b"first", 3) == 0
    assert world.flush(memoryview(bytearray(b"-second-"))[1:7], 8) == 0
    assert world.path.read_bytes() == b"\0\0\0firstsecond"
    world.thread.stop()


def test_a_call_that_fails_is_told_by_its_errno_and_the_next_job_runs(world: World) -> None:
    reading = os.open(world.path, os.O_RDONLY)
    assert world.flush(b"x", 0, reading) == errno.EBADF, "pwrite"
    os.close(reading)
    near, far = os.pipe()
    assert world.flush(b"", 0, far) == errno.EINVAL, "fdatasync: a pipe has no disk"
    os.close(near)
    os.close(far)
    assert world.flush(b"x", 0) == 0
    world.thread.stop()


def test_a_short_write_goes_on_and_its_failure_is_told(world: World) -> None:
    """A file that may not grow beyond 4 KiB takes the part that fits, then EFBIG."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        assert world.flush(b"x" * 5000, 0) == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert world.path.stat().st_size == 4096
    world.thread.stop()


def test_the_bytes_are_held_until_the_job_has_ended(world: World) -> None:
    data = bytearray(b"stays")
    world.thread.start(world.fd, data, len(data), 0)
    with pytest.raises(BufferError):
        data.extend(b"could move it")
    while world.thread.maybe_end() < 0:
        select.select([world.ended_fd], [], [], SECONDS_MAX)
        os.eventfd_read(world.ended_fd)
    data.extend(b" no more")
    world.thread.stop()


def test_a_stop_waits_for_the_job(world: World) -> None:
    world.thread.start(world.fd, b"last", 4, 0)
    world.thread.stop()
    assert world.thread.maybe_end() == 0 and world.path.read_bytes() == b"last"
    assert select.select([world.ended_fd], [], [], 0.0)[0], "and its end is told"
