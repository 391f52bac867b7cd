"""The log of queues is watched while somebody asks: for ids of what was pushed, and for how deep channels are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import MockClock

from rumq.admin.answers import ChannelPlaces
from rumq.queues import QueuePorts
from rumq.queues.engine.log_watch import IDLE_SECONDS, PLACES_SECONDS, DepthWatch
from rumq.queues.link.ports import no_answer
from rumq.queues.reading.log_tail import Look


def play(main: Callable[[], Awaitable[None]]) -> None:
    """In no time: the clock jumps where nothing happens for 20 ms, in which a look on its thread is over."""
    trio.run(main, clock=MockClock(autojump_threshold=0.02))


class Tail:
    """The end of a log, as the test has it. looks: how often somebody looked"""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.looks = 0

    def look(self, since_us: int) -> Look:
        self.looks += 1
        numbers, self.numbers = defaultdict(list, self.numbers), {}
        return Look([], {}, Counter(), numbers)


def watch(ask: Any) -> tuple[DepthWatch, Tail]:
    async def no_broker() -> Any:
        raise OSError

    ports = QueuePorts(
        name="door", open_broker=no_broker, permit_of=lambda user: None, event=lambda *_, **__: None,
        now_us=lambda: 0, ask=ask,
    )  # fmt: skip
    made, tail = DepthWatch(ports, "queues-", "queues-ids-", lambda: 0), Tail()
    made._tail = tail  # type: ignore[assignment]
    return made, tail


def test_ids_are_told_while_a_shard_does_not_answer() -> None:
    """As after the death of a leader: what others have taken has its ids meanwhile."""

    async def main() -> None:
        async def hang(*_: Any) -> Any:
            await trio.sleep_forever()

        made, tail = watch(hang)
        found: list[tuple[int, int | None]] = []

        def put(count: int, number: int | None) -> None:
            found.append((count, number))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            made.ask()
            await trio.sleep(PLACES_SECONDS)
            made.ids.expect("queues-ids-1", "t", 1, put, trio.current_time() + 2)
            tail.numbers["queues-ids-1", "t"] = [(7, 8)]
            await trio.sleep(0.3)
            nursery.cancel_scope.cancel()
        assert found == [(1, 7)]

    play(main)


def test_who_wants_fresh_depths_waits_for_where_the_groups_stand() -> None:

    async def main() -> None:
        asked: list[float] = []

        async def slowly(*_: Any) -> ChannelPlaces:
            asked.append(trio.current_time())
            await trio.sleep(0.4)
            return ChannelPlaces(places=[])

        made, _ = watch(slowly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            began = trio.current_time()
            await made.wait_fresh(0.0)
            assert asked[0] <= trio.current_time() - 0.4 and made.fresh_at >= began
            nursery.cancel_scope.cancel()

    play(main)


def test_nothing_runs_once_nobody_pushes() -> None:

    async def main() -> None:
        made, tail = watch(no_answer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            made.ask()
            await trio.sleep(2 * IDLE_SECONDS)
            before = tail.looks
            await trio.sleep(60)
            assert tail.looks == before > 0
            nursery.cancel_scope.cancel()

    play(main)
