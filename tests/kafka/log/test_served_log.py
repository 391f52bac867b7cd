"""The log as connections read it: waiters are woken by a commit, by the broker's word or by a mark."""

import math
import threading
from pathlib import Path

import pytest
import trio

from commitlog.read.partition_view import PartitionView
from rumq.gateway.records.partition_views import PartitionViews
from rumq.kafka.log import served_log
from rumq.kafka.log.partition_moves import PartitionMoves
from rumq.kafka.log.served_log import KafkaLog, LogPartition
from tests.kafka.log.test_tail import Log

P0 = "main/g1/p0"


class Broker:
    """Says how far it is, and counts who asks."""

    def __init__(self, committed: int | None) -> None:
        self.committed, self.asked = committed, 0

    async def ask(self, names: set[str]) -> dict[str, int] | None:
        self.asked += 1
        return None if self.committed is None else dict.fromkeys(names, self.committed)


def run_with(log: Log, broker: Broker | None, test: object) -> None:
    async def run() -> None:
        found = KafkaLog(log.root, broker)
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(found.run)
                await found.look()
                await test(found, found.partitions[P0])  # type: ignore[operator]
                nursery.cancel_scope.cancel()
        found.close()

    trio.run(run)
    log.store.close()


async def reach(served: KafkaLog, partition: LogPartition, end: int) -> None:
    while partition.end < end:
        with PartitionMoves([partition]) as moves:
            served.follow(partition)
            await moves.wait(math.inf)


def test_a_record_is_there_as_soon_as_the_broker_says_that_it_is_committed(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"0")
    broker = Broker(1)

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        await reach(served, partition, 1)
        assert partition.tail is not None
        log.write(b"1")
        with trio.move_on_after(0.2) as waited:
            await reach(served, partition, 2)
        assert waited.cancelled_caught and partition.end == 1  # written, and not said
        broker.committed = 2
        log.write(b"2")  # a write is what has it ask again
        await reach(served, partition, 2)

    run_with(log, broker, test)
    assert broker.asked


def test_without_a_word_the_marks_of_the_files_tell(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"0")

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        served.follow(partition)
        while partition.tail is None:
            await trio.sleep(0)
        log.write(b"1")
        log.write(b"2")  # proves the one before
        await reach(served, partition, 2)
        chunks = list(partition.chunks(1, partition.piece(1, 1 << 20)))
        assert [each.base_lsn for each in chunks] == [1] and not partition.has_in_files(1)

    run_with(log, None, test)


@pytest.mark.parametrize("sees", [True, False])
def test_segments_that_end_are_followed_by_their_next(
    sees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without inotify."""
    if not sees:
        monkeypatch.setattr(served_log.FileWatch, "watch", lambda *_: False)
        monkeypatch.setattr(served_log, "LOOK_SECONDS", 0.01)
    log = Log(tmp_path, segment_bytes_max=20_000)
    log.write(b"0")
    broker = Broker(None)

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        seen, at = [0], 1
        for _ in range(60):
            log.write(b"x" * 1000)
            broker.committed = log.count
            for job in iter(log.store.own[0].take_seal_job, None):
                job.run()
            await reach(served, partition, log.count)
            while at < partition.end:
                end = partition.piece(at, 1 << 20)
                if end <= at:
                    await served.look()
                    await trio.sleep(0.01)
                    continue
                for chunk in partition.chunks(at, end):
                    seen += range(chunk.base_lsn, chunk.next_lsn)
                at = end
        assert seen == list(range(log.count))

    run_with(log, broker, test)


def test_the_end_never_goes_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"0")
    log.write(b"1")
    broker = Broker(2)

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        await reach(served, partition, 2)
        partition.tail = None  # nobody follows any more
        await served.look(0.0)
        assert partition.view.end_lsn < 2 and partition.end == 2
        assert await served.reach(partition, 2) and not await served.reach(partition, 3)
        broker.committed = None
        assert await served.reach(partition, 3) is None

    run_with(log, broker, test)


def test_a_partition_is_followed_as_long_as_somebody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long ago it was that they asked: a client may wait for half a minute."""
    monkeypatch.setattr(served_log, "FOLLOWED_SECONDS", -1.0)
    log = Log(tmp_path)
    log.write(b"0")

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        with PartitionMoves([partition]) as moves:
            served.follow(partition)
            while partition.tail is None:
                await trio.lowlevel.checkpoint()
            log.write(b"1")
            log.write(b"2")
            while partition.end < 2:  # each may be seen alone
                await moves.wait(math.inf)
        assert not partition.is_awaited

    run_with(log, None, test)


def test_a_partition_is_followed_for_some_seconds_after_somebody_has_waited(tmp_path: Path) -> None:
    """However long that was: while who waited takes an answer, more is written."""
    log = Log(tmp_path)
    log.write(b"0")

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        with PartitionMoves([partition]) as moves:
            served.follow(partition)
            while partition.tail is None:
                await trio.lowlevel.checkpoint()
            partition.asked_at = -math.inf
            await moves.wait(trio.current_time())
        log.write(b"1")
        log.write(b"2")
        while partition.end < 2:
            await trio.lowlevel.checkpoint()

    run_with(log, None, test)


def test_who_is_content_with_an_old_view_does_not_wait_for_a_look_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.write(b"0")
    begun, end = threading.Event(), threading.Event()

    def slowly(views: PartitionViews) -> list[PartitionView]:
        begun.set()
        assert end.wait(20)
        return []

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        monkeypatch.setattr(PartitionViews, "current", slowly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(served.look, 0.0)
            await trio.to_thread.run_sync(begun.wait)
            try:
                with trio.fail_after(10):
                    await served.look(math.inf)
            finally:
                end.set()

    run_with(log, None, test)


def test_a_move_between_two_waits_ends_the_second_one(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(b"0")

    async def test(served: KafkaLog, partition: LogPartition) -> None:
        with PartitionMoves([partition]) as moves:
            await moves.wait(trio.current_time())
            partition.wake()
            await moves.wait(math.inf)

    run_with(log, None, test)
