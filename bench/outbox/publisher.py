"""A program that publishes at a rate by way of its store-and-forward file, and may be killed at any time.

`python -m bench.outbox.publisher PORT PATH FIRST END RATE`. A message is FIRST/number: of a batch that was kept but not
yet said when its program was killed, the next program publishes the numbers again. On standard output it says the last
number of each batch once that is kept, and "forwarded" with its CPU seconds when the broker has all of them."""

from __future__ import annotations

import sys
import time

import trio

from rumq.client import OutboxOptions, Outgoing, connect

TOPIC = "bench/outbox"
PERIOD_S = 0.02


def payload(first: int, number: int) -> bytes:
    """64 bytes."""
    return (b"%d/%d/" % (first, number)).ljust(64, b".")


def parsed(payload: bytes) -> tuple[int, int]:
    first, number, _ = payload.split(b"/")
    return int(first), int(number)


async def publish(port: int, path: str, first: int, end: int, rate: int) -> None:
    store = OutboxOptions(path, leave_seconds_max=0)
    async with connect("127.0.0.1", port, store=store) as client:
        begin, number = trio.current_time(), first
        while number < end:
            due = min(end, first + int((trio.current_time() - begin + PERIOD_S) * rate))
            batch = [Outgoing(TOPIC, payload(first, each)) for each in range(number, due)]
            await client.publish_batch(batch)
            number = due
            print(number - 1, flush=True)
            await trio.sleep_until(begin + (number - first) / rate)
        await client.outbox.wait_empty()
        print("forwarded", time.process_time(), flush=True)


if __name__ == "__main__":
    port, path, first, end, rate = sys.argv[1:]
    trio.run(publish, int(port), path, int(first), int(end), int(rate))
