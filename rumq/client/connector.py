"""The way into a client: a context that is connected inside and has left in order outside."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from rumq.client.address import WEBSOCKET_PATH, Address, parse_url
from rumq.client.client import Client
from rumq.client.connection import Keeper
from rumq.client.packet_stream import OpenStream
from rumq.client.options import Options
from rumq.client.tls import Tls, context_of, open_tls_stream


@asynccontextmanager
async def connect(
    host: str = "localhost",
    port: int | None = None,
    *,
    tls: bool | Tls | ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect over TCP, TLS or WebSocket. options: see `Options`; all have defaults.

    host             a name or an address, or a URL: mqtts://user:password@broker:8883, ws:// and wss:// likewise
    port             that of the URL, or the usual one [1883; with TLS 8883]
    tls              True: the system's authorities are believed; `Tls` names files; or a context of one's own
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

    raises: Refused, ConnectionLost; ConfigError for a URL or a file of TLS that cannot be taken
    """
    address = parse_url(host) if "://" in host else Address(host, 0, "mqtts" if tls else "mqtt")
    if not address.port:
        address = address._replace(port=8883 if address.is_tls else 1883)
    if port is not None:
        address = address._replace(port=port)
    for name in ("username", "password"):
        if (found := getattr(address, name)) is not None:
            options.setdefault(name, found)
    if tls is False and address.is_tls:
        raise ValueError(f"{host} asks for TLS, and tls is False")
    context: ssl.SSLContext | None = None
    if isinstance(tls, ssl.SSLContext):
        context = tls
    elif tls or address.is_tls:
        context = context_of(tls if isinstance(tls, Tls) else Tls())
    async with connect_over(partial(open_way, address, context), **options) as client:
        yield client


async def open_way(address: Address, context: ssl.SSLContext | None) -> trio.abc.Stream:
    """What lies between the network and MQTT. raises: OSError, ConnectionLost"""
    stream: trio.abc.Stream
    if context is None:
        stream = await trio.open_tcp_stream(address.host, address.port)
    else:
        stream = await open_tls_stream(address.host, address.port, context)
    if not address.is_websocket:
        return stream
    from rumq.client.websocket import open_websocket  # most clients need none

    host = f"[{address.host}]" if ":" in address.host else address.host
    return await open_websocket(stream, f"{host}:{address.port}", address.path or WEBSOCKET_PATH)


@asynccontextmanager
async def connect_over(open_stream: OpenStream, **options: Any) -> AsyncIterator[Client]:
    """The same over any stream. open_stream: called for each connection; may raise OSError and ConnectionLost."""
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
