"""A broker that is published to, before and beside Spark's own tasks: is it there, and a client of it."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from rumq.client import Client, connect_over


async def open_to(target: Any) -> trio.abc.Stream:
    """A stream to the broker of a `Target`. raises: OSError"""
    stream: trio.abc.Stream = await trio.open_tcp_stream(target.host, target.port)
    if target.tls:
        context = ssl.create_default_context(cafile=target.tls_ca)
        stream = trio.SSLStream(stream, context, server_hostname=target.host)
    return stream


def connected(target: Any) -> AbstractAsyncContextManager[Client]:
    """A client of a `Target`. raises: Refused, ConnectionLost"""
    password = Path(target.password_file).read_text().strip() if target.password_file else None
    # No keep-alive: who waits for Spark does not read.
    return connect_over(partial(open_to, target), username=target.username, password=password, keep_alive=0)


def reach(target: Any) -> None:
    """Connect and leave. raises: Refused, ConnectionLost"""

    async def look() -> None:
        async with connected(target):
            pass

    trio.run(look)
