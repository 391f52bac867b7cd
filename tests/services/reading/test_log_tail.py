"""The end of the log, read once for all: what looks have read is joined, and many followers wait longer."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from commitlog import Chunk
from rumq.gateway.records.partition_views import PartitionViews
from rumq.services.reading.log_tail import LOOK_SECONDS, LOOK_SECONDS_MAX, FollowedLog
from tests.spark.logs import Publisher, message, store_at

P0 = "main/g1/p0"


def test_what_several_looks_have_read_is_joined(tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "d"))
    publisher = Publisher(store.own[0])

    async def story() -> None:
        tail = FollowedLog(PartitionViews(str(tmp_path / "d"), now=iter(range(0, 1000, 2)).__next__))
        assert await tail.look()
        for n in range(3):
            publisher.chunk([message("t", b"%d" % n)] * 2)
            assert await tail.look()
        assert not await tail.look()
        piece = tail.maybe_kept(P0, 2, 6)
        assert piece is not None and [each.base_lsn for each in piece if isinstance(each, Chunk)] == [2, 4]
        assert tail.maybe_kept(P0, 2, 5) is None and tail.maybe_kept(P0, 1, 6) is None
        assert tail.maybe_kept(P0, 4, 8) is None
        with tail.followed():
            pass
        assert tail.maybe_kept(P0, 2, 6) is None, "nobody follows, and records are held"
        tail.close()

    asyncio.run(story())
    store.close()


def test_many_followers_wait_longer(tmp_path: Path) -> None:
    async def story() -> None:
        tail = FollowedLog(PartitionViews(str(tmp_path)))
        assert tail.look_seconds == LOOK_SECONDS
        with ExitStack() as held:
            for _ in range(200):
                held.enter_context(tail.followed())
            assert tail.look_seconds == pytest.approx(0.1)
            for _ in range(5_000):
                held.enter_context(tail.followed())
            assert tail.look_seconds == LOOK_SECONDS_MAX
        assert tail.look_seconds == LOOK_SECONDS
        tail.close()

    asyncio.run(story())


def test_followers_are_woken_and_publishers_sooner(tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "d"))
    publisher = Publisher(store.own[0])

    async def story() -> None:
        tail = FollowedLog(PartitionViews(str(tmp_path / "d"), now=iter(range(0, 10_000, 2)).__next__))
        running = asyncio.create_task(tail.run())
        with tail.followed(), tail.urgent():
            publisher.chunk([message("t", b"")])
            moved, now = tail.moved, tail.moved_now
            async with asyncio.timeout(30):
                await now.wait()
                await moved.wait()
            assert tail.views[P0].end_lsn == 1
        running.cancel()
        tail.close()

    asyncio.run(story())
    store.close()
