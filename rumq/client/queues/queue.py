"""A queue of a rumq broker, as those see it who make it and push to it: through the gateway. Decision 64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import trio

from rumq.client.queues.gateway_requests import GatewayRequests
from rumq.client.queues.queue_errors import WAY_OUT, PushRefusal, QueueRefused
from rumq.client.queues.queue_messages import QueuePush

BATCH_MAX = 1_000  # messages of a request


class Queue:
    """Made by `Client.queue`. Nothing is asked before a method is called."""

    def __init__(self, requests: GatewayRequests, label: str) -> None:
        self.label = label
        self._requests, self._path = requests, f"queues/{quote(label, safe='')}"

    async def create(self, **settings: Any) -> None:
        """Make the queue; one that is there with the same settings stays.

        settings: ttl_seconds, records_max, bytes_max, when_full (docs/reference/queues.md, "Definitions")
        raises:   QueueRefused: "conflict" if it has others, "forbidden" for a token without the role administer;
                  ConnectionLost
        """
        await self._ask("POST", "", settings, f"queue {self.label!r}")

    async def create_channel(self, channel_id: str, *, topic: str | None = None, **settings: Any) -> None:
        """Make a channel, which sees what is pushed from now on; one that is there with the same settings stays.

        topic:    of the queue, None: all of it
        settings: visible_seconds, tries_max, dead_letters, is_ordered, retry_seconds
        raises:   QueueRefused: "conflict" if it is another one, "forbidden" for a token without consume; ConnectionLost
        """
        what = f"channel {self.label}/{channel_id}"
        await self._ask("POST", "/channels", {"id": channel_id, "topic": topic, **settings}, what)

    async def push(
        self,
        payload: bytes | str,
        *,
        topic: str | None = None,
        key: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = "",
        delay_seconds: float = 0.0,
        expiry_seconds: int | None = None,
    ) -> str | None:
        """Push one message; returns once it is as safe as the stream of queues promises. Arguments: see `QueuePush`

        returns: its id, such as "17@sport"; None where it is delayed or not known yet
        raises:  QueueRefused: "queue-full", "not-found" ...; ConnectionLost: it may have been pushed or not. With
                 `reconnect` it is pushed again instead, as publish with QoS 1 does: at least once
        cost:    a request, and some 50 ms for the id; `push_batch(..., with_ids=False)` has none
        """
        message = QueuePush(
            payload=payload, topic=topic, key=key, headers=headers, content_type=content_type,
            delay_seconds=delay_seconds, expiry_seconds=expiry_seconds,
        )  # fmt: skip
        return (await self.push_batch([message]))[0]

    async def push_batch(self, messages: Sequence[QueuePush], *, with_ids: bool = True) -> list[str | None]:
        """Push messages in order, a thousand in a request; returns their ids, Nones without `with_ids`.

        raises: as `push`; QueueRefused with `refused`, numbers of this batch and reasons, if some were not taken: the
                others of their thousand are pushed, those behind it are not
        """
        ids: list[str | None] = []
        for first in range(0, len(messages), BATCH_MAX):
            try:
                ids += await self._push([each.fields() for each in messages[first : first + BATCH_MAX]], with_ids)
            except QueueRefused as fault:
                refused = {first + number: why for number, why in fault.refused.items()}
                raise QueueRefused(fault.what, fault.kind, fault.detail, refused, (*ids, *fault.ids)) from None
        return ids

    async def _push(self, bodies: list[dict[str, object]], with_ids: bool) -> list[str | None]:
        """A request's messages; those that the broker could not take just then are asked for again."""
        ids: list[str | None] = [None] * len(bodies)
        left, what, back_off = list(range(len(bodies))), f"push to queue {self.label!r}", self._requests.back_off()
        while left:
            refused: dict[int, PushRefusal] = {}
            try:
                answer = await self._ask("POST", "/messages", [bodies[number] for number in left], what, ids=with_ids)
                found = answer["ids"]
            except QueueRefused as fault:
                found, refused = fault.ids, {left[place]: why for place, why in fault.refused.items()}
                is_temporary = bool(refused) and all(each.kind == "unavailable" for each in refused.values())
                pause = back_off.maybe_pause() if is_temporary and back_off is not None else None
                if pause is None:
                    told = {**dict(enumerate(ids)), **dict(zip(left, found, strict=False))}
                    raise QueueRefused(what, fault.kind, fault.detail, refused, tuple(told.values())) from None
                await trio.sleep(pause)
            for number, each in zip(left, found, strict=False):  # without ids there are none
                ids[number] = each
            left = sorted(refused)
        return ids

    async def _ask(self, method: str, path: str, body: object, what: str, **parameters: object) -> Mapping[str, Any]:
        return await self._requests.ask(method, f"{self._path}{path}", body, what, **parameters)


async def ensure_channel(
    requests: GatewayRequests, label: str, channel_id: str, topic: str | None, create: bool | Mapping[str, Any]
) -> None:
    """Make the channel, and its queue, where there are none. create: True: as they are if they are there; settings of
    the channel: it must have those. raises: QueueRefused, ConnectionLost"""
    queue = Queue(requests, label)
    settings = {} if isinstance(create, bool) else dict(create)

    async def make_channel() -> None:
        try:
            await queue.create_channel(channel_id, topic=topic, **settings)
        except QueueRefused as fault:
            if fault.kind != "conflict" or settings:
                raise

    try:
        await make_channel()
    except QueueRefused as fault:
        if fault.kind != "not-found":
            raise
        try:
            await queue.create()
        except QueueRefused as other:
            if other.kind != "conflict":  # another program was faster, with settings of its own
                raise
        await make_channel()


def need_gateway(requests: GatewayRequests | None, what: str) -> GatewayRequests:
    """raises: ValueError with the way out"""
    if requests is None:
        raise ValueError(f"{what} through the broker's gateway: {WAY_OUT}")
    return requests
