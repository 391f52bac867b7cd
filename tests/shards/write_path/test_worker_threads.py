"""Worker threads: jobs of a lane in order, lanes beside each other, every end told on the loop."""

import errno
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commitlog.disk.files import RealFiles
from commitlog.kernels.positioned_write import WAITED
from commitlog.write.segment_writer import Flush
from rumq.shards.write_path import worker_threads
from rumq.shards.write_path.worker_threads import LogStateUnknown, Worker

SECONDS_MAX = 30.0  # a job that waits longer for another one fails the test


class World:
    """ended: (result, fault) of each job, in the order in which the loop was told"""

    def __init__(self, **options: Any) -> None:
        self.failed: list[str] = []
        self.worker = Worker("w", self.failed.append, **options)
        self.ended: list[tuple[object, BaseException | None]] = []

    def submit(self, job: Any, lane: int = 0) -> None:
        self.worker.submit(job, lambda result, fault: self.ended.append((result, fault)), lane)

    def flush(self, flush: Flush, lane: int = 0) -> None:
        self.worker.flush(flush, lambda result, fault: self.ended.append((result, fault)), lane)

    def finish(self, count: int) -> None:
        """Until so many jobs have ended."""
        while len(self.ended) < count:
            assert select.select([self.worker.fd], [], [], SECONDS_MAX)[0]
            self.worker.finish()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.worker.stop()


def test_a_job_runs_on_a_thread_and_its_end_is_told_on_the_loop(world: World) -> None:
    told: list[threading.Thread] = []
    world.worker.submit(threading.current_thread, lambda thread, fault: told.append(thread))
    assert world.worker.pending == 1
    select.select([world.worker.fd], [], [], SECONDS_MAX)
    assert not told, "nothing is told before the loop asks"
    world.worker.finish()
    (thread,) = told
    assert thread is not threading.current_thread() and thread.name == "w-0" and thread.daemon
    assert world.worker.pending == 0


def test_what_a_job_raises_is_its_result(world: World) -> None:
    world.submit(lambda: 1 // 0)
    world.submit(lambda: 7)
    world.finish(2)
    (result, fault), after = world.ended
    assert result is None and isinstance(fault, ZeroDivisionError)
    assert after == (7, None), "its thread goes on"


def test_jobs_of_a_lane_run_in_order(world: World) -> None:
    ran: list[int] = []
    for number in range(100):
        world.submit(lambda number=number: ran.append(number))
    world.finish(100)
    assert ran == list(range(100))


def test_a_lane_that_waits_for_its_disk_does_not_delay_another(world: World) -> None:
    is_over = threading.Event()
    world.submit(lambda: is_over.wait(SECONDS_MAX), lane=0)
    world.submit(lambda: 7, lane=1)
    world.finish(1)
    assert world.ended == [(7, None)]
    is_over.set()
    world.finish(2)
    assert world.ended == [(7, None), (True, None)]


def test_one_lane_stands_for_all_where_their_order_is_to_be_the_same_each_time() -> None:
    world = World(one_lane=True)
    ran: list[str] = []
    for lane in (3, 1, 2):
        world.submit(lambda: ran.append(threading.current_thread().name), lane)
    world.finish(3)
    world.worker.stop()
    assert ran == ["w-0"] * 3


def test_the_descriptor_is_quiet_once_all_has_been_told(world: World) -> None:
    world.submit(lambda: None)
    world.finish(1)
    assert select.select([world.worker.fd], [], [], 0.0)[0] == []
    world.worker.finish()
    assert len(world.ended) == 1


def fails(result: object, fault: BaseException | None) -> None:
    raise ValueError


def test_a_call_back_that_raises_is_reported_and_the_next_one_is_made(world: World) -> None:
    world.worker.submit(lambda: None, fails)
    world.submit(lambda: 7)
    world.finish(1)
    assert world.failed == ["w"] and world.ended == [(7, None)] and world.worker.pending == 0


def test_without_anybody_to_report_to_it_raises_out_of_finish() -> None:
    worker = Worker("w")
    worker.submit(lambda: None, fails)
    select.select([worker.fd], [], [], SECONDS_MAX)
    with pytest.raises(ValueError):
        worker.finish()
    worker.stop()


def test_a_log_of_unknown_state_ends_the_shard_whoever_guards_the_call() -> None:
    world = World()

    def broken(result: object, fault: BaseException | None) -> None:
        raise LogStateUnknown

    world.worker.submit(lambda: None, broken)
    select.select([world.worker.fd], [], [], SECONDS_MAX)
    with pytest.raises(LogStateUnknown):
        world.worker.finish()
    assert world.failed == []
    world.worker.stop()


def test_a_stop_waits_for_what_was_submitted_and_tells_it() -> None:
    world = World()
    for number in range(10):
        world.submit(lambda number=number: number, lane=number % 3)
    world.worker.stop()
    assert sorted(result for result, _ in world.ended) == list(range(10))  # type: ignore[type-var]
    assert world.worker.pending == 0


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[int]:
    """An open file."""
    handle = os.open(tmp_path / "segment", os.O_RDWR | os.O_CREAT)
    yield handle
    os.close(handle)


def flushed(files: RealFiles, handle: int, data: bytes, position: int) -> Flush:
    return Flush(files, handle, files.descriptor(handle), position, memoryview(data))


class Derived(RealFiles):
    """Does something of its own, as those of the kill tests do: no kernel may go past it."""


@pytest.mark.parametrize("files", [RealFiles(), Derived()], ids=["kernel", "run"])
def test_a_flush_writes_and_syncs_on_a_thread(world: World, segment: int, files: RealFiles) -> None:
    world.flush(flushed(files, segment, b"abc", 0))
    assert world.worker.pending == 1
    world.finish(1)
    world.flush(flushed(files, segment, b"def", 3), lane=5)
    world.finish(2)
    assert world.ended == [(None, None)] * 2 and world.worker.pending == 0
    assert os.pread(segment, 9, 0) == b"abcdef"


def test_a_flush_is_a_job_while_there_is_no_descriptor_for_its_thread(
    world: World, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log goes on when clients have all of them."""

    def without_descriptors(ended_fd: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(worker_threads, "FlushThread", without_descriptors)
    world.flush(flushed(RealFiles(), segment, b"abc", 0))
    world.finish(1)
    monkeypatch.undo()
    world.flush(flushed(RealFiles(), segment, b"def", 3))
    world.finish(2)
    assert world.ended == [(None, None)] * 2
    assert os.pread(segment, 10, 0)[:6] == b"abcdef"


@pytest.mark.parametrize("files", [RealFiles(), Derived()], ids=["kernel", "run"])
def test_a_flush_that_fails_gives_the_error_of_the_call(world: World, files: RealFiles) -> None:
    near, far = os.pipe()
    world.flush(flushed(files, far, b"a pipe cannot be written at a position", 0))
    world.finish(1)
    os.close(near)
    os.close(far)
    ((result, fault),) = world.ended
    assert result is None and isinstance(fault, OSError) and fault.errno == errno.ESPIPE


def test_flushes_of_lanes_run_beside_each_other_and_beside_jobs(world: World, segment: int) -> None:
    is_over = threading.Event()
    world.submit(lambda: is_over.wait(SECONDS_MAX), lane=0)
    for lane in range(3):
        world.flush(flushed(RealFiles(), segment, bytes([lane]), lane), lane)
    world.finish(3)
    is_over.set()
    world.finish(4)
    assert os.pread(segment, 9, 0) == bytes(range(3))


def unsynced(files: RealFiles, handle: int, data: bytes, position: int) -> Flush:
    return Flush(files, handle, files.descriptor(handle), position, memoryview(data), syncs=False)


@pytest.mark.parametrize("files", [RealFiles(), Derived()], ids=["kernel", "run"])
def test_a_group_that_waits_for_no_disk_is_written_on_the_loop_while_no_thread_has_work(
    world: World, segment: int, files: RealFiles
) -> None:
    assert world.worker.maybe_write(unsynced(files, segment, b"abc", 0))
    assert os.pread(segment, 9, 0) == b"abc"
    gate = threading.Event()
    world.submit(lambda: gate.wait(SECONDS_MAX))
    later = unsynced(files, segment, b"def", 3)
    assert not world.worker.maybe_write(later), "another lane may be using the same files"
    world.flush(later, lane=1)
    gate.set()
    world.finish(2)
    assert os.pread(segment, 9, 0) == b"abcdef"
    assert world.worker.maybe_write(unsynced(files, segment, b"ghi", 6)) and os.pread(segment, 9, 6) == b"ghi"


@pytest.mark.parametrize("files", [RealFiles(), Derived()], ids=["kernel", "run"])
def test_a_write_on_the_loop_that_fails_raises_the_error_of_the_call(world: World, files: RealFiles) -> None:
    near, far = os.pipe()
    with pytest.raises(OSError, match="Illegal seek"):
        world.worker.maybe_write(unsynced(files, far, b"a pipe cannot be written at a position", 0))
    os.close(near)
    os.close(far)


def test_a_flush_keeps_no_group_from_being_written_on_the_loop(world: World, segment: int) -> None:
    """It uses one open file and nothing else; a stream whose disk is slow must not make others wait for threads."""
    world.flush(flushed(RealFiles(), segment, b"x", 0))
    assert world.worker.maybe_write(unsynced(RealFiles(), segment, b"y", 1))
    world.finish(1)


def test_a_stop_waits_for_a_flush_and_tells_it(segment: int) -> None:
    world = World()
    world.flush(flushed(RealFiles(), segment, b"last", 0))
    world.worker.stop()
    assert world.ended == [(None, None)] and os.pread(segment, 9, 0) == b"last"


def test_after_a_write_on_the_loop_that_waited_threads_write_for_a_while(segment: int) -> None:
    now, found = 100.0, WAITED
    worker = Worker("w", monotonic=lambda: now)

    class Waiting(Flush):
        """Its kernel says what the test wants."""

        def write_now(self) -> bool:
            return found != 0

    flush = Waiting(RealFiles(), segment, segment, 0, memoryview(b"x"), syncs=False)
    assert worker.maybe_write(flush)
    assert not worker.maybe_write(flush)
    now, found = now + 1.0, 0
    assert worker.maybe_write(flush) and worker.maybe_write(flush)
    worker.stop()
