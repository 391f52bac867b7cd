"""A queue of rumq: a door in this process, beside a broker of one shard, as the gateway and gRPC have one.

What is measured is the door with the broker; what HTTP costs on top shows `of_rest`. The processor time of the door is
in that of this process."""

from __future__ import annotations

from pathlib import Path

import trio

from bench.connections import BenchFault
from bench.gateway.running import Running, running
from bench.queue.result import BATCH, CONSUMERS, PRODUCERS, Ledger, Meter, QueueRun, batches_of, payload
from rumq.gateway.broker.shard_client import ShardClient
from rumq.process.wiring.door_memory import freeze
from rumq.process.wiring.queue_ports import queue_ports
from rumq.queues import ChannelSettings, Push, Pushed, Queues, QueueSettings
from rumq.settings.table import Data, Settings
from rumq.settings.table import queues as queues_table

FLAGS = ("queues.enabled=true",)
DEEP_BATCH = 10_000
DEPTH_SECONDS_MAX = 3600


def measure(folder: Path, messages: int, depth: int) -> list[QueueRun]:
    """Of an empty queue, and then with a depth. raises: Lost, BenchFault"""
    with running(*FLAGS) as broker:
        freeze()
        return trio.run(run, broker, messages, depth)


def pids_of(broker: Running) -> dict[str, list[int]]:
    return {"shard": broker.shards, "gateway": [broker.gateway]}


async def run(broker: Running, messages: int, depth: int) -> list[QueueRun]:
    data = str(broker.folder / "data")
    settings = Settings(data=Data(dir=data), queues=queues_table.Queues(enabled=True))
    door = Queues(queue_ports(settings, "bench", lambda: None, ShardClient(data, 1).ask, lambda *_, **__: None))
    dropping = ChannelSettings(dead_letters="drop")
    found: list[QueueRun] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(door.run)
        await door.create_queue("", "bench", QueueSettings(records_max=0, ttl_seconds=DEPTH_SECONDS_MAX))
        await door.create_channel("", "bench", settings=dropping, channel_id="work")
        found.append(await flow(door, "work", Ledger(messages), Meter(pids_of(broker))))
        if depth:
            await door.create_channel("", "bench", settings=dropping, channel_id="deep")
            await door.delete_channel("", "work")
            for first in range(0, depth, DEEP_BATCH):
                batch = [Push(payload=payload(-1))] * min(DEEP_BATCH, depth - first)
                await door.push("", "bench", batch, with_ids=False)
            await door.create_channel("", "bench", settings=dropping, channel_id="work")
            at_end = await flow(door, "work", Ledger(messages), Meter(pids_of(broker)))
            at_head = await flow(door, "deep", Ledger(messages, counts_any=True), Meter(pids_of(broker)))
            found.append(at_end._replace(name=f"{depth:,} deep, what is pushed now"))
            found.append(at_head._replace(name=f"{depth:,} deep, the oldest first"))
        nursery.cancel_scope.cancel()
    return found


async def flow(door: Queues, channel: str, ledger: Ledger, meter: Meter) -> QueueRun:
    done = trio.Event()
    left, messages = PRODUCERS, ledger.left

    async def produce(number: int) -> None:
        nonlocal left
        for numbers in batches_of(number, messages):
            batch = [Push(payload=payload(each)) for each in numbers]
            if not all(isinstance(each, Pushed) for each in await door.push("", "bench", batch, with_ids=False)):
                raise BenchFault("a push was refused")
        left -= 1
        if not left and not ledger.left:
            done.set()

    async def consume() -> None:
        async with door.consume("", channel, BATCH) as consumer:
            while True:
                batch = await consumer.next_batch(BATCH, 10.0)
                for each in batch:
                    ledger.consumed(each.payload)
                await consumer.acknowledge([each.id for each in batch])
                if not left and not ledger.left:
                    done.set()

    async with trio.open_nursery() as nursery:
        for number in range(PRODUCERS):
            nursery.start_soon(produce, number)
        for _ in range(CONSUMERS):
            nursery.start_soon(consume)
        with trio.move_on_after(60 + messages / 1000):
            await done.wait()
        found = meter.run_of(messages)
        nursery.cancel_scope.cancel()
    ledger.check()
    return found
