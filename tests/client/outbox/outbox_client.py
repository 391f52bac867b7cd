"""A process that publishes numbers by way of an outbox, and is killed: `python -m ... PORT PATH TOPIC FIRST END`.

It says each number on standard output once it is kept, and "forwarded" when the outbox is empty."""

import sys

import trio

from rumq.client import Outgoing, Store, connect

BATCH = 10


async def main(port: int, path: str, topic: str, first: int, end: int) -> None:
    async with connect("127.0.0.1", port, store=Store(path, syncs=False, leave_seconds_max=0)) as client:
        for number in range(first, end, BATCH):
            batch = [Outgoing(topic, b"%d" % each) for each in range(number, min(number + BATCH, end))]
            await client.publish_batch(batch)
            print(batch[-1].payload.decode(), flush=True)
        await client.outbox.wait_empty()
        print("forwarded", flush=True)


if __name__ == "__main__":
    port, path, topic, first, end = sys.argv[1:]
    trio.run(main, int(port), path, topic, int(first), int(end))
