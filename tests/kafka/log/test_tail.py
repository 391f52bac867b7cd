"""The tail of a partition: what is committed is shown, once, and nothing else."""

from pathlib import Path

import pytest

from commitlog import Chunk, RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.kafka.log import tail as module
from rumq.kafka.log.tail import PartitionTail
from tests.commitlog.records import index, pack
from tests.spark.logs import Publisher, message, store_at

LARGE = 1 << 24


class Log:
    """One that is written while a tail follows. A chunk proves those before it."""

    def __init__(self, root: Path, *, segment_bytes_max: int = LARGE) -> None:
        self.root = str(root / "data")
        self.store = store_at(self.root, segment_bytes_max=segment_bytes_max, holder="pid 1\n")
        self._publisher = Publisher(self.store.own[0])
        self.count = 0

    def write(self, *payloads: bytes) -> None:
        self._publisher.chunk([message("t", payload) for payload in payloads])
        self.count += len(payloads)

    def view(self) -> PartitionView:
        [found] = LogReader(RealFiles(), self.root).partitions()
        return found

    def tail(self) -> PartitionTail:
        view = self.view()
        return PartitionTail(RealFiles(), view.segments()[-1], view.end_lsn)


def lsns(tail: PartitionTail, at: int = 0) -> list[int]:
    return [lsn for chunk in tail.chunks(at, tail.end) for lsn in range(chunk.base_lsn, chunk.next_lsn)]


def test_a_record_is_shown_once_it_is_proved_or_said_to_be_committed(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"0", b"1")
    log.write(b"2")
    tail = log.tail()
    begin = tail.end
    tail.look()
    assert (tail.end, tail.written) == (begin, 3) and begin < 3  # the last chunk is proved by nothing yet
    assert not tail.said(begin) and tail.said(3) and tail.end == 3
    log.write(b"3")
    tail.look()
    assert (tail.end, tail.written) == (3, 4)
    tail.said(99)  # more than the file has
    assert tail.end == 4 and lsns(tail, tail.first) == list(range(tail.first, 4))
    log.write(b"4")
    log.write(b"5")
    assert tail.look_shortly()
    assert tail.end == 6  # as was said before
    log.store.close()


def test_a_look_takes_all_that_was_written_however_large(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"first")
    tail = log.tail()
    tail.said(1 << 40)
    log.write(b"x" * 100)
    log.write(*[b"y" * 3000] * 200)
    assert not tail.look_shortly()
    tail.look()
    assert tail.end == log.count and lsns(tail, 1) == list(range(1, log.count))
    [part] = list(tail.chunks(5, 8))
    assert (part.base_lsn, part.next_lsn) == (5, 8)
    log.store.close()


def test_old_chunks_are_dropped_and_committed_ones_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES_MAX", 10_000)
    log = Log(tmp_path)
    log.write(b"first")
    tail = log.tail()
    for _ in range(30):
        log.write(b"x" * 1000)
    tail.look()
    assert tail.end >= log.count - 1 and lsns(tail, tail.first) == list(range(tail.first, tail.end))
    tail.said(log.count)
    for _ in range(30):
        log.write(b"x" * 1000)
    tail.look()
    assert 30 < tail.first < tail.end == log.count - 1
    assert lsns(tail, tail.first) == list(range(tail.first, tail.end))
    log.store.close()


def test_a_segment_that_ends_is_followed_no_more(tmp_path: Path) -> None:
    log = Log(tmp_path, segment_bytes_max=20_000)
    log.write(b"first")
    tail = log.tail()
    while not tail.is_ended:
        log.write(b"x" * 1000)
        tail.look()
        for job in iter(log.store.own[0].take_seal_job, None):
            job.run()
    assert tail.end <= log.count
    following = log.tail()
    assert not following.is_ended and following.end >= tail.end
    log.store.close()


@pytest.mark.parametrize("shortly", [True, False])
def test_a_segment_that_was_packed_before_its_end_was_seen_is_followed_no_more(tmp_path: Path, shortly: bool) -> None:
    log = Log(tmp_path, segment_bytes_max=20_000)
    log.write(b"first")
    tail = log.tail()
    partition = log.store.own[0]
    while len(partition.segments.files) < 2:
        log.write(b"x" * 1000)
        index(partition)
    assert pack(partition) == 1
    if shortly:
        tail.look_shortly()
    else:
        tail.look()
    assert tail.is_ended and lsns(tail) == []
    following = log.tail()
    assert not following.is_ended and following.end > 1
    log.store.close()


def test_a_segment_that_was_packed_between_the_view_and_the_tail_is_followed_no_more(tmp_path: Path) -> None:
    """A tail that took the packed file for one that is being written would wait at its end for ever."""
    log = Log(tmp_path, segment_bytes_max=20_000)
    log.write(b"first")
    log.write(b"second")
    view, partition = log.view(), log.store.own[0]
    while len(partition.segments.files) < 2:
        log.write(b"x" * 1000)
        index(partition)
    assert pack(partition) == 1
    tail = PartitionTail(RealFiles(), view.segments()[-1], view.end_lsn)
    tail.look()
    assert tail.is_ended
    log.store.close()


def test_a_chunk_that_is_half_written_is_not_taken(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"first")
    tail = log.tail()
    tail.said(1 << 40)
    log.write(b"second" * 50)
    [path] = list(Path(log.root, "main/g1/p0").glob("*.seg"))
    whole = path.read_bytes()
    at = whole.rindex(b"second")
    path.write_bytes(whole[:at] + b"\0" * 6 + whole[at + 6 :])
    tail.look()
    assert tail.written == 1
    path.write_bytes(whole)
    tail.look()
    assert tail.written == 2
    [chunk] = list(tail.chunks(1, 2))
    assert isinstance(chunk, Chunk)
    log.store.close()
