"""A process that publishes numbers by way of an outbox, and is killed: `python -m ... PORT PATH TOPIC FIRST END`.

A message is FIRST/number: of a batch that was kept and not yet said when it was killed, the next process publishes the
numbers again. It says the last number of each batch on standard output, and "forwarded" when the outbox is empty."""

import sys

import trio

from rumq.client import OutboxOptions, Outgoing, connect

BATCH = 10


async def main(port: int, path: str, topic: str, first: int, end: int) -> None:
    async with connect("127.0.0.1", port, store=OutboxOptions(path, syncs=False, leave_seconds_max=0)) as client:
        for number in range(first, end, BATCH):
            numbers = range(number, min(number + BATCH, end))
            await client.publish_batch([Outgoing(topic, b"%d/%d" % (first, each)) for each in numbers])
            print(numbers[-1], flush=True)
        await client.outbox.wait_empty()
        print("forwarded", flush=True)


if __name__ == "__main__":
    port, path, topic, first, end = sys.argv[1:]
    trio.run(main, int(port), path, topic, int(first), int(end))
