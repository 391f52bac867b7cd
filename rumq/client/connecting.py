"""The way into a client: a context that is connected inside and has left in order outside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from rumq.client.client import Client
from rumq.client.keeper import Keeper
from rumq.client.link import OpenStream
from rumq.client.options import Options


@asynccontextmanager
async def connect(host: str = "localhost", port: int = 1883, **options: Any) -> AsyncIterator[Client]:
    """Connect over TCP. options: see `Options`; all have defaults.

    client_id        "" lets the broker give one
    version          5, or 4 for MQTT 3.1.1
    clean_start      forget an earlier session of this client id [True]
    session_expiry   seconds the session outlives the connection, MQTT 5 [0]
    will             a `Will`, published by the broker when we vanish, or leave the context by an error
    keep_alive       seconds, 0 for none [60]
    username, password
    receive_maximum  QoS 1 and 2 messages the broker may send unacknowledged, MQTT 5 [1000]
    reconnect        on loss try again after 0.1 s, up to 2 s apart, resend and subscribe again [False]
    connect_seconds_max  time for the connection and the broker's answer [10]

    raises: Refused, ConnectionLost
    """
    async with connect_over(partial(trio.open_tcp_stream, host, port), **options) as client:
        yield client


@asynccontextmanager
async def connect_over(open_stream: OpenStream, **options: Any) -> AsyncIterator[Client]:
    """The same over any stream, such as TLS. open_stream: called for each connection; may raise OSError."""
    chosen = Options(**options)
    keeper = Keeper(open_stream, chosen)
    client = Client(keeper, chosen)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(keeper.run)
            yield client
            await client.leave()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The nursery is ours alone and its task raises nothing: what comes out is the user's own error.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise
