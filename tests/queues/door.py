"""A door as a process: reads commands as lines of JSON, writes what happens as lines of JSON. Can be killed.

{"do": "consume", "channel": ID, "credit": 10, "answers": "nothing" or "acknowledge"}
{"do": "push", "label": L, "payloads": [...]}"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import trio

from rumq.queues import Push, Pushed, Queues
from tests.queues.world import World


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def consume(door: Queues, channel: str, credit: int, answers: str) -> None:
    async with door.consume("", channel, credit) as consumer:
        say(consumes=channel)
        while True:
            batch = await consumer.next_batch(credit, 60.0)
            if answers == "acknowledge":
                await consumer.acknowledge([each.id for each in batch])
            say(got=[[str(each.id), each.payload.decode(), each.tries] for each in batch])


async def push(door: Queues, label: str, payloads: list[str]) -> None:
    found = await door.push("", label, [Push(payload=each.encode()) for each in payloads])
    say(pushed=[str(each.id) if isinstance(each, Pushed) else None for each in found])


async def main(data: str, name: str, shards: int) -> None:
    world = World(Path(data).parent, shards=shards)
    door = Queues(world.ports(name))
    async with trio.open_nursery() as nursery:
        await nursery.start(door.run)
        say(is_ready=True)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            command: dict[str, Any] = json.loads(line)
            does = {"consume": consume, "push": push}[command.pop("do")]
            nursery.start_soon(lambda does=does, command=command: does(door, **command))
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
