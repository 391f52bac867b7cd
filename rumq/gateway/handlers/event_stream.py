"""Records as server-sent events (HTML, 9.2): a client that connects again with the last id misses none and gets none
twice. Bounded by `rumq.gateway.records.log_watch`; ends with an event `end` that says why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec
import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rumq.gateway.handlers.log_watcher import LogWatcher
from rumq.gateway.http.media_types import EVENTS
from rumq.gateway.records.log_watch import TooManyWatch
from rumq.gateway.records.records import RecordSlice, text_of

KEEP_ALIVE_SECONDS = 15.0
RETRY = b"retry: 2000\n"  # ms after which a browser connects again
PIECE_RECORDS_MAX, PIECE_BYTES_MAX = 200, 256 << 10


class EventStream(Response):
    """first: piece, which the watcher has given already; place: of a watcher, held while it runs

    fault: the answer, or the last event's data, for an exception"""

    media_type = EVENTS

    def __init__(
        self, watcher: LogWatcher, first: RecordSlice, place: Callable[[], AbstractContextManager[None]],
        fault: Callable[[Exception], Response],
    ) -> None:  # fmt: skip
        super().__init__()
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"  # a proxy is not to wait for more
        self._watcher, self._first, self._place, self._fault = watcher, first, place, fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
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
        except TooManyWatch as fault:  # the last place was taken since it was looked for
            await self._fault(fault)(scope, receive, send)

    async def _run(self, send: Send) -> None:
        async def send_body(data: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        await send_body(RETRY + as_events(self._first))
        while True:
            try:
                piece = await self._watcher.next_piece(PIECE_RECORDS_MAX, PIECE_BYTES_MAX, KEEP_ALIVE_SECONDS)
            except Exception as fault:
                body = bytes(self._fault(fault).body)
                await send_body(b"event: end\ndata: " + body + b"\n\n", more=False)
                return
            await send_body(as_events(piece))


async def end_with(receive: Receive, scope: trio.CancelScope) -> None:
    """Cancel once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def as_events(piece: RecordSlice) -> bytes:
    """Each record with the cursor behind it as its id; a block without data, which only moves the id, at the end."""
    lines = []
    if piece.lost:
        lines.append(b'event: lost\ndata: {"records":%d}\n\n' % piece.lost)
    place = dict(piece.begin)
    for record in piece.records:
        place[record.partition] = record.lsn + 1
        lines.append(b"id: %s\ndata: %s\n\n" % (text_of(place).encode(), msgspec.json.encode(record)))
    if not piece.records or place != piece.end:
        lines.append(b": \nid: %s\n\n" % text_of(piece.end).encode())
    return b"".join(lines)
