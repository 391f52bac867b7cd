"""One coroutine waits as a thread, as a task of trio and as a task of asyncio."""

import asyncio
import os

import pytest
import trio

from rumq.embedded.readiness import run_now, wait_as_task, wait_blocking


async def read(wait: object, fd: int) -> bytes:
    await wait(fd, 60.0)  # type: ignore[operator]
    return os.read(fd, 1)


@pytest.mark.parametrize(
    "run",
    [
        lambda fd: run_now(read(wait_blocking, fd)),
        lambda fd: trio.run(read, wait_as_task, fd),
        lambda fd: asyncio.run(read(wait_as_task, fd)),
    ],
)
def test_it_returns_once_there_is_something_to_read(run: object) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"x")
    assert run(ours) == b"x"  # type: ignore[operator]
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    "run",
    [
        lambda fd: run_now(wait_blocking(fd, 0.001)),
        lambda fd: trio.run(wait_as_task, fd, 0.001),
        lambda fd: asyncio.run(wait_as_task(fd, 0.001)),
    ],
)
def test_it_gives_up_after_its_time(run: object) -> None:
    ours, theirs = os.pipe()
    run(ours)  # type: ignore[operator]
    os.close(ours)
    os.close(theirs)


def test_a_task_of_trio_does_not_hold_up_others() -> None:
    async def main() -> bytes:
        ours, theirs = os.pipe()
        found: list[bytes] = []

        async def reader() -> None:
            found.append(await read(wait_as_task, ours))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader)
            await trio.testing.wait_all_tasks_blocked()
            os.write(theirs, b"x")
        os.close(ours)
        os.close(theirs)
        return found[0]

    assert trio.run(main) == b"x"


def test_the_blocking_loop_takes_nothing_that_suspends() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="descriptor"):
        run_now(suspends())
