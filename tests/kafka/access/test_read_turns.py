"""Turns of reads: few at once, addresses in turn, and who gives up holds nobody up."""

import trio
from trio.testing import wait_all_tasks_blocked

from rumq.kafka.access.read_turns import ReadTurns


def test_addresses_take_turns() -> None:
    async def run() -> list[str]:
        turns, order, going = ReadTurns(1), list[str](), trio.Event()

        async def read(address: str) -> None:
            async with turns.turn(address, ""):
                order.append(address)
                await going.wait()

        async with trio.open_nursery() as nursery:
            for address in ("first", "a", "a", "a", "b"):
                nursery.start_soon(read, address)
                await wait_all_tasks_blocked()
            assert order == ["first"]
            going.set()
        return order

    assert trio.run(run) == ["first", "a", "b", "a", "a"]


def test_who_gives_up_holds_nobody_up() -> None:
    async def run() -> None:
        turns = ReadTurns(1)
        scope = trio.CancelScope()

        async def wait() -> None:
            with scope:
                async with turns.turn("b", ""):
                    raise AssertionError("it was cancelled")

        async with trio.open_nursery() as nursery:
            async with turns.turn("a", ""):
                nursery.start_soon(wait)
                await wait_all_tasks_blocked()
                scope.cancel()
                await wait_all_tasks_blocked()
            with trio.fail_after(5):
                async with turns.turn("c", ""):
                    pass

    trio.run(run)
