"""Pushes and consumes while something is killed, and what must hold afterwards.

What was acknowledged is consumed, at least once; an id has one payload, a payload that was pushed once one id."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

import trio

from rumq.queues import MessageId, Push, Pushed, QueueError, Queues


class Traffic:
    """acknowledged: payload -> id, None where it was not told; consumed: how often; ids: payloads of each

    pushed_at, consumed_at: by name, when whole batches were acknowledged and when messages came, monotonic seconds"""

    def __init__(self, label: str, channel: str) -> None:
        self.label, self.channel = label, channel
        self.acknowledged: dict[bytes, MessageId | None] = {}
        self.consumed: Counter[bytes] = Counter()
        self.ids: defaultdict[MessageId, set[bytes]] = defaultdict(set)
        self.ids_of: defaultdict[bytes, set[MessageId]] = defaultdict(set)
        self.pushed_at: defaultdict[str, list[float]] = defaultdict(list)
        self.consumed_at: defaultdict[str, list[float]] = defaultdict(list)
        self.faults = 0
        self.is_over = False

    async def push(self, door: Queues, name: str, topics: int = 3, batch: int = 20) -> None:
        """Until it is over. A payload is pushed once: whether it was taken where there was no answer, nobody knows."""
        number = 0
        while not self.is_over:
            given = [
                Push(payload=f"{name}-{number + at}".encode(), topic=f"t{(number + at) % topics}")
                for at in range(batch)
            ]
            number += batch
            try:
                results = await door.push("", self.label, given)
                for each, result in zip(given, results, strict=True):
                    if isinstance(result, Pushed):
                        self.acknowledged[each.payload] = result.id
                if all(isinstance(result, Pushed) for result in results):
                    self.pushed_at[name].append(time.monotonic())
            except QueueError:
                self.faults += 1
                await trio.sleep(0.05)
            await trio.sleep(0.01)

    async def consume(self, door: Queues, credit: int = 50, name: str = "") -> None:
        """Until cancelled."""
        while True:
            try:
                async with door.consume("", self.channel, credit) as consumer:
                    while True:
                        found = await consumer.next_batch(credit, 5.0)
                        if found:
                            self.consumed_at[name].append(time.monotonic())
                        for each in found:
                            self.consumed[each.payload] += 1
                            self.ids[each.id].add(each.payload)
                            self.ids_of[each.payload].add(each.id)
                        await consumer.acknowledge([each.id for each in found])
            except QueueError:
                self.faults += 1
                await trio.sleep(0.05)

    @property
    def lost(self) -> set[bytes]:
        return set(self.acknowledged) - set(self.consumed)

    def check(self) -> None:
        assert not self.lost, f"{len(self.lost)} of {len(self.acknowledged)}: {sorted(self.lost)[:5]}"
        assert all(len(payloads) == 1 for payloads in self.ids.values()), "an id with two payloads"
        assert all(len(ids) == 1 for ids in self.ids_of.values()), "a message with two ids"
        told = {payload: found for payload, found in self.acknowledged.items() if found is not None}
        assert told, "ids are told"
        for payload, found in told.items():
            assert self.ids_of[payload] == {found}, (payload, found, self.ids_of[payload])
        twice = sum(count - 1 for count in self.consumed.values())
        print(f"{len(self.acknowledged)} acknowledged, {twice} came again, {self.faults} faults were met")
