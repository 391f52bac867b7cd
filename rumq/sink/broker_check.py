"""A client of the sink's broker for use outside of Spark's tasks, and a check that the broker is reachable."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import trio

from rumq.client import Client, connect_over
from rumq.sink.sink_options import SinkOptions


async def open_to(options: SinkOptions) -> trio.abc.Stream:
    """A stream to the broker. raises: OSError"""
    stream: trio.abc.Stream = await trio.open_tcp_stream(options.host, options.port)
    if options.tls:
        context = ssl.create_default_context(cafile=options.tls_ca)
        stream = trio.SSLStream(stream, context, server_hostname=options.host)
    return stream


def connected(options: SinkOptions) -> AbstractAsyncContextManager[Client]:
    """A connected client. raises: Refused, ConnectionLost"""
    password = Path(options.password_file).read_text().strip() if options.password_file else None
    # No keep-alive: a caller that waits for Spark does not read.
    return connect_over(partial(open_to, options), username=options.username, password=password, keep_alive=0)


def reach(options: SinkOptions) -> None:
    """Connect and disconnect. raises: Refused, ConnectionLost"""

    async def look() -> None:
        async with connected(options):
            pass

    trio.run(look)
