"""Writes at a position, compiled and as Python: all of it, the errno of what fails, whether the thread had to wait."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel_forms import forms


@pytest.fixture(params=forms("commitlog.kernels.positioned_write"))
def kernel(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path / "segment", os.O_RDWR | os.O_CREAT)
    yield handle
    os.close(handle)


@pytest.mark.parametrize("made", [bytes, bytearray, memoryview])
def test_all_of_it_is_written_where_it_belongs(kernel: Any, segment: int, made: Any) -> None:
    assert kernel.write_now(segment, made(b"abc behind it"), 3, 0) & ~kernel.WAITED == 0
    assert kernel.write_now(segment, made(b"def" * 5000), 15_000, 3) & ~kernel.WAITED == 0
    assert os.pread(segment, 20_000, 0) == b"abc" + b"def" * 5000


def test_what_fails_gives_the_errno_of_the_call(kernel: Any) -> None:
    near, far = os.pipe()
    assert kernel.write_now(far, b"a pipe cannot be written at a position", 9, 0) & ~kernel.WAITED == errno.ESPIPE
    os.close(near)
    os.close(far)
    assert kernel.write_now(far, b"closed", 6, 0) & ~kernel.WAITED == errno.EBADF


def test_nothing_is_written_of_nothing(kernel: Any, segment: int) -> None:
    assert kernel.write_now(segment, b"", 0, 0) & ~kernel.WAITED == 0 and os.fstat(segment).st_size == 0


def test_a_thread_that_waits_for_the_disk_is_told_so(kernel: Any, tmp_path: Path) -> None:
    """With O_DSYNC each write waits for the disk, where there is one."""
    handle = os.open(tmp_path / "synced", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
    found = [kernel.write_now(handle, b"x" * 4096, 4096, 4096 * at) for at in range(8)]
    os.close(handle)
    if not any(found):
        pytest.skip("the file system of the tests waits for no disk")
    assert set(found) <= {0, kernel.WAITED}


def test_a_thread_that_is_preempted_did_not_wait(kernel: Any, segment: int) -> None:
    """Others want the core all the time, and a write to the page cache is told as one that waited for nothing."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        found = [kernel.write_now(segment, b"x" * 4096, 4096, 4096 * (at % 4)) for at in range(2000)]
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, before)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw > 0
    assert found.count(0) > 1900
