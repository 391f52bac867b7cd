"""A queue of rumq: a door in this process, beside a broker of one shard, as the gateway and gRPC have one.

What is measured is the door with the broker; what HTTP or gRPC cost on top is theirs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from bench.connections import BenchFault
from bench.queue.result import BATCH, CONSUMERS, PRODUCERS, Lost, QueueRun, number_of, payload
from rumq.gateway.broker.shard_client import ShardClient
from rumq.process.wiring.queue_ports import queue_ports
from rumq.queues import ChannelSettings, Push, Pushed, Queues, QueueSettings
from rumq.settings.table import Data, Settings
from rumq.settings.table.queues import QueueSection

START_SECONDS = 30.0


@contextmanager
def broker(folder: Path) -> Iterator[Path]:
    """A broker with queues; its data directory."""
    data = folder / "data"
    flags = ("gateway.port=-1", "queues.enabled=true", "listener.port=0")
    command = [sys.executable, "-m", "rumq", "run", "--data", str(data)]
    process = subprocess.Popen(
        [*command, *(word for flag in flags for word in ("--set", flag))], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        until = time.monotonic() + START_SECONDS
        for line in process.stderr:
            if json.loads(line).get("event") == "broker.ready":
                break
            if time.monotonic() > until:
                raise BenchFault("the broker does not begin")
        yield data
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(START_SECONDS)


def measure(folder: Path, messages: int, depth: int) -> QueueRun:
    """raises: Lost, BenchFault"""
    with broker(folder) as data:
        return trio.run(run, data, messages, depth)


async def run(data: Path, messages: int, depth: int) -> QueueRun:
    settings = Settings(data=Data(dir=str(data)), queues=QueueSection(enabled=True))
    door = Queues(queue_ports(settings, "bench", lambda: None, ShardClient(str(data), 1).ask, lambda *_, **__: None))
    async with trio.open_nursery() as nursery:
        await nursery.start(door.run)
        await door.create_queue("", "bench", QueueSettings(records_max=0, ttl_seconds=3600))
        # What makes the depth: a channel that nobody consumes.
        if depth:
            await door.create_channel("", "bench", settings=ChannelSettings(dead_letters="drop"), channel_id="deep")
            for first in range(0, depth, 10_000):
                batch = [Push(payload=payload(-1)) for _ in range(min(10_000, depth - first))]
                await door.push("", "bench", batch, with_ids=False)
        made = await door.create_channel("", "bench", settings=ChannelSettings(dead_letters="drop"))
        found = await flow(door, made.definition.channel_id, messages)
        nursery.cancel_scope.cancel()
    return found._replace(depth=depth)


async def flow(door: Queues, channel: str, messages: int) -> QueueRun:
    seen = bytearray(messages)
    left = messages
    done = trio.Event()

    async def produce(number: int) -> None:
        for first in range(number * BATCH, messages, PRODUCERS * BATCH):
            batch = [Push(payload=payload(each)) for each in range(first, min(first + BATCH, messages))]
            if not all(isinstance(each, Pushed) for each in await door.push("", "bench", batch, with_ids=False)):
                raise BenchFault("a push was refused")

    async def consume() -> None:
        nonlocal left
        async with door.consume("", channel, BATCH) as consumer:
            while True:
                batch = await consumer.next_batch(BATCH, 10.0)
                for each in batch:
                    number = number_of(each.payload)
                    left -= not seen[number]
                    seen[number] = 1
                await consumer.acknowledge([each.id for each in batch])
                if not left:
                    done.set()

    began = time.monotonic()
    async with trio.open_nursery() as nursery:
        for number in range(PRODUCERS):
            nursery.start_soon(produce, number)
        for _ in range(CONSUMERS):
            nursery.start_soon(consume)
        with trio.move_on_after(60 + messages / 1000):
            await done.wait()
        nursery.cancel_scope.cancel()
    if left:
        raise Lost(f"{left} of {messages} were not consumed")
    return QueueRun(messages, time.monotonic() - began)
