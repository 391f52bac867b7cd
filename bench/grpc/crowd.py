"""Subscribers in a process of their own: `python -m bench.grpc.crowd PORT COUNT TOPICS SECONDS`; JSON at the end.

Each follows one topic of the crowd, or with TOPICS 1 all follow the same; ids are checked to have no gap."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from grpc import aio

from bench.grpc.caller import LARGEST, SERVICE, target_of
from rumq.services.generated import broker_service_pb2 as pb

A_CHANNEL = 50
READY = "ready"


class Follower:
    """received: records; gaps: ids that are missing or wrong; last: id"""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.received = self.gaps = self.last = 0
        self.waits: list[float] = []

    async def follow(self, channel: aio.Channel, begun: asyncio.Event) -> None:
        call = channel.unary_stream(
            f"{SERVICE}/Subscribe", pb.SubscribeRequest.SerializeToString, pb.SubscribeResponse.FromString
        )(pb.SubscribeRequest(topics={self.topic: pb.Start(position=pb.POSITION_LATEST)}))
        await call.initial_metadata()
        begun.set()
        async for answer in call:
            now_us = time.time_ns() // 1000
            for record in answer.records:
                self.gaps += bool(self.last) and record.id != self.last + 1
                self.last = record.id
            self.received += len(answer.records)
            if answer.records:
                self.waits.append((now_us - answer.records[0].time_us) / 1e3)


async def crowd(port: int, count: int, topics: int, seconds: float) -> dict[str, float]:
    followers = [Follower(f"crowd/{n % topics}") for n in range(count)]
    channels = [aio.insecure_channel(target_of(port), LARGEST) for _ in range(0, count, A_CHANNEL)]
    begun = [asyncio.Event() for _ in followers]
    tasks = [
        asyncio.create_task(each.follow(channels[n // A_CHANNEL], begun[n])) for n, each in enumerate(followers)
    ]  # fmt: skip
    await asyncio.gather(*(each.wait() for each in begun))
    print(READY, flush=True)
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    failed = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    for channel in channels:
        await channel.close(None)
    waits = sorted(wait for each in followers for wait in each.waits)
    return {
        "received": sum(each.received for each in followers), "gaps": sum(each.gaps for each in followers),
        "ended": len(failed), "p50 ms": waits[len(waits) // 2] if waits else 0.0,
        "p99 ms": waits[len(waits) * 99 // 100] if waits else 0.0,
    }  # fmt: skip


if __name__ == "__main__":
    numbers = [float(each) for each in sys.argv[1:]]
    print(json.dumps(asyncio.run(crowd(int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3]))))
