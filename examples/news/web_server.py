"""A Starlette application on a port, on trio, until SIGTERM or Ctrl-C; with the HTTP connections of rumq's gateway."""

import signal
from collections.abc import Callable
from functools import partial

import trio
from starlette.applications import Starlette

from rumq.gateway.http.http_connection import HttpConnection, HttpPeer

IDLE_SECONDS_MAX, ANSWER_SECONDS_MAX = 60.0, 60.0


async def serve(app: Starlette, host: str, port: int, ready: Callable[[], None]) -> None:
    async def answer(stream: trio.SocketStream) -> None:
        peer = HttpPeer(*stream.socket.getpeername()[:2])
        connection = HttpConnection(
            stream, app, peer, "http", idle_seconds_max=IDLE_SECONDS_MAX, answer_seconds_max=ANSWER_SECONDS_MAX,
            on_request=lambda path: None, on_idle=lambda is_kept: None,
        )  # fmt: skip
        async with stream:
            try:
                await connection.serve()
            except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the browser has left

    async with trio.open_nursery() as nursery:
        await nursery.start(partial(trio.serve_tcp, answer, port, host=host))
        ready()


async def until_stopped(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
