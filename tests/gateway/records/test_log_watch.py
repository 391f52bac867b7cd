"""Who follows the log is told that it has grown: one look for all of them, none without them, each in its share."""

import pytest
import trio
from trio.testing import MockClock

from rumq.gateway.records.log_watch import LOOK_SECONDS, LogWatch, TooManyWatch


class Log:
    """looks: how often its ends were asked for"""

    def __init__(self) -> None:
        self.ends, self.looks, self.is_lost = {"main/g1/p0": 0}, 0, False

    async def looked(self, ends: object) -> dict[str, int]:
        self.looks += 1
        if self.is_lost:
            raise OSError(5, "gone")
        return dict(self.ends)


def played(body: object, count_max: int = 200) -> None:
    async def run() -> None:
        log = Log()
        watch = LogWatch(dict, count_max, log.looked)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            await body(watch, log)  # type: ignore[operator]
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_nobody_looks_at_the_log_unless_somebody_follows_it() -> None:
    async def body(watch: LogWatch, log: Log) -> None:
        await trio.sleep(60)
        assert log.looks == 0
        with watch.place("10.0.0.1", "a"):
            await trio.sleep(10 * LOOK_SECONDS)
        seen = log.looks
        assert 5 < seen < 15
        await trio.sleep(60)
        assert log.looks <= seen + 1

    played(body)


def test_a_thousand_watchers_cost_what_one_does_and_all_are_told_at_once() -> None:
    async def body(watch: LogWatch, log: Log) -> None:
        woken = []

        async def follow(n: int) -> None:
            with watch.place(f"10.0.{n // 256}.{n % 256}", f"{n}"):
                await trio.sleep(5 * LOOK_SECONDS)
                await watch.moved.wait()
                woken.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            for n in range(1000):
                nursery.start_soon(follow, n)
            await trio.sleep(10 * LOOK_SECONDS)
            assert not woken
            log.ends["main/g1/p0"] += 1
            grown_at = trio.current_time()
        assert len(woken) == 1000 and max(woken) - grown_at <= 1.5 * LOOK_SECONDS
        assert log.looks < 20

    played(body, 2000)


def test_a_log_that_cannot_be_read_wakes_its_watchers_who_find_out_why() -> None:
    async def body(watch: LogWatch, log: Log) -> None:
        with watch.place("10.0.0.1", "a"):
            await trio.sleep(5 * LOOK_SECONDS)
            log.is_lost = True
            with trio.fail_after(2 * LOOK_SECONDS):
                await watch.moved.wait()

    played(body)


def test_growth_between_asking_and_waiting_is_not_missed() -> None:
    async def body(watch: LogWatch, log: Log) -> None:
        with watch.place("10.0.0.1", "a"):
            await trio.sleep(5 * LOOK_SECONDS)
            moved = watch.moved
            log.ends["main/g1/p0"] += 1
            await trio.sleep(5 * LOOK_SECONDS)  # a read that takes long
            with trio.fail_after(0.001):
                await moved.wait()

    played(body)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([("10.0.0.1", "a"), ("10.0.0.1", "b")], "of this network"),
        ([("10.0.0.2", "c"), ("10.0.0.3", "c")], "of this token"),
        ([("10.0.0.2", "a"), ("10.0.0.3", "b"), ("10.0.0.4", "d"), ("10.0.0.5", "e")], "watchers_max"),
    ],
)
def test_watchers_are_bounded_in_all_and_by_network_and_token(others: list[tuple[str, str]], words: str) -> None:
    async def body(watch: LogWatch, log: Log) -> None:
        places = [watch.place(*each) for each in others]
        for each in places:
            each.__enter__()
        with pytest.raises(TooManyWatch, match=words), watch.place("10.0.0.1", "c"):
            pass
        assert watch.count == len(others), "who is refused takes no place"
        for each in places:
            each.__exit__(None, None, None)
        with watch.place("10.0.0.1", "c"):
            assert watch.count == 1

    played(body, 4)
