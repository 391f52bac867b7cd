"""A broker that is published to, before and beside Spark's own tasks: is it there, and a client of it."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from rumq.client import Client, connect_over


async def open_to(options: Any) -> trio.abc.Stream:
    """A stream to the broker of a `SinkOptions`. raises: OSError"""
    stream: trio.abc.Stream = await trio.open_tcp_stream(options.host, options.port)
    if options.tls:
        context = ssl.create_default_context(cafile=options.tls_ca)
        stream = trio.SSLStream(stream, context, server_hostname=options.host)
    return stream


def connected(options: Any) -> AbstractAsyncContextManager[Client]:
    """A client of a `SinkOptions`. raises: Refused, ConnectionLost"""
    password = Path(options.password_file).read_text().strip() if options.password_file else None
    # No keep-alive: who waits for Spark does not read.
    return connect_over(partial(open_to, options), username=options.username, password=password, keep_alive=0)


def reach(options: Any) -> None:
    """Connect and leave. raises: Refused, ConnectionLost"""

    async def look() -> None:
        async with connected(options):
            pass

    trio.run(look)
