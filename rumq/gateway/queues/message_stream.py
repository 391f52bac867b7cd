"""Messages of a channel as server-sent events (HTML, 9.2). What is not acknowledged meanwhile bounds what is sent.

The consumer ends with the stream, and what it holds is given to others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec
import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rumq.gateway.consumers.channel_consumers import ChannelConsumers, HeldConsumer
from rumq.gateway.handlers.event_stream import KEEP_ALIVE_SECONDS, RETRY, end_with
from rumq.gateway.http.media_types import EVENTS
from rumq.gateway.queues.queue_rows import message_row
from rumq.gateway.records.log_watch import TooManyWatch
from rumq.queues import Delivered

PIECE_MESSAGES_MAX = 100


class MessageStream(Response):
    """place: of a watcher, held while it runs; check: raises Unauthorized once the token may not any more

    fault: the answer, or the last event's data, for an exception"""

    media_type = EVENTS

    def __init__(
        self, consumers: ChannelConsumers, held: HeldConsumer, place: Callable[[], AbstractContextManager[None]],
        check: Callable[[], None], fault: Callable[[Exception], Response],
    ) -> None:  # fmt: skip
        super().__init__()
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"  # a proxy is not to wait for more
        self._consumers, self._held = consumers, held
        self._place, self._check, self._fault = place, check, fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            with self._held.asked():
                if scope["method"] == "HEAD":
                    await send(start)
                    await send({"type": "http.response.body"})
                    return
                try:
                    with self._place():
                        await send(start)
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(end_with, receive, nursery.cancel_scope)
                            await self._run(send)
                            nursery.cancel_scope.cancel()
                except TooManyWatch as fault:
                    await self._fault(fault)(scope, receive, send)
        finally:
            self._consumers.end(self._held)

    async def _run(self, send: Send) -> None:
        async def send_body(data: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        named = msgspec.json.encode({"consumer": self._held.name})
        await send_body(RETRY + b"event: consumer\ndata: %s\n\n" % named)
        while True:
            try:
                self._check()
                found = await self._held.take(PIECE_MESSAGES_MAX, KEEP_ALIVE_SECONDS)
            except Exception as fault:
                body = bytes(self._fault(fault).body)
                await send_body(b"event: end\ndata: " + body + b"\n\n", more=False)
                return
            await send_body(as_message_events(found))


def as_message_events(messages: list[Delivered]) -> bytes:
    """Each message with its id; a comment where there is none, for proxies."""
    if not messages:
        return b": \n\n"
    rows = (message_row(each, is_binary=False) for each in messages)
    return b"".join(b"id: %s\ndata: %s\n\n" % (row.id.encode(), msgspec.json.encode(row)) for row in rows)
