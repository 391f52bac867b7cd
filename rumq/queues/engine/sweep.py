"""Takes all that a channel has, and does one thing with it: nothing (purge), or push it elsewhere (redrive)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rumq.queues.engine.consumer import Consumer
from rumq.queues.rules.messages import Delivered

AT_A_TIME = 1000
QUIET_SECONDS = 0.5  # after which there is nothing more


async def sweep(
    consumer: Consumer, until_us: int, messages_max: int, do: Callable[[list[Delivered]], Awaitable[None]] | None
) -> int:
    """What was pushed until then; it is acknowledged once it is done. returns: how many messages. raises: QueueError"""
    count = 0
    while count < messages_max:
        batch = await consumer.next_batch(min(AT_A_TIME, messages_max - count), QUIET_SECONDS)
        if not batch:
            break
        older = [each for each in batch if each.pushed_us <= until_us]
        if do is not None and older:
            await do(older)
        await consumer.acknowledge([each.id for each in older])
        count += len(older)
        if len(older) < len(batch):
            break
    consumer.give_back()
    return count
