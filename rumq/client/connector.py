"""`connect`: a context manager around a connected client; it disconnects cleanly at the end."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from rumq.client.address import WEBSOCKET_PATH, BrokerAddress, parse_url
from rumq.client.client import Client
from rumq.client.connection import BrokerConnection
from rumq.client.options import ConnectOptions
from rumq.client.packet_stream import OpenStream
from rumq.client.tls import Tls, open_tls_stream, ssl_context


@asynccontextmanager
async def connect(
    host: str = "localhost",
    port: int | None = None,
    *,
    tls: bool | Tls | ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect over TCP, TLS or WebSocket. options: see `ConnectOptions`; all have defaults.

    host             a name or an address, or a URL: mqtts://user:password@broker:8883, ws:// and wss:// likewise
    port             that of the URL, or the standard one [1883; with TLS 8883]
    tls              True: trust the system's certificate authorities; `Tls` names files; or an ssl.SSLContext
    client_id        "": the broker assigns one
    version          5, or 4 for MQTT 3.1.1
    clean_start      forget an earlier session of this client id [True]
    session_expiry   seconds the session outlives the connection, MQTT 5 [0]
    will             a `Will`, published by the broker when the connection is lost or the context ends with an error
    keep_alive       seconds, 0 for none [60]
    username, password
    receive_maximum  QoS 1 and 2 messages the broker may send unacknowledged, MQTT 5 [1000]
    reconnect        after a loss reconnect with backoff of 0.1 to 2 s, resend and resubscribe [False]
    connect_seconds_max  time for the connection and the broker's answer [10]

    raises: Refused, ConnectionLost; ConfigError for an invalid URL or TLS file
    """
    address = parse_url(host) if "://" in host else BrokerAddress(host, 0, "mqtts" if tls else "mqtt")
    if not address.port:
        address = address._replace(port=8883 if address.is_tls else 1883)
    if port is not None:
        address = address._replace(port=port)
    for name in ("username", "password"):
        if (found := getattr(address, name)) is not None:
            options.setdefault(name, found)
    if tls is False and address.is_tls:
        raise ValueError(f"{host} requires TLS, and tls is False")
    context: ssl.SSLContext | None = None
    if isinstance(tls, ssl.SSLContext):
        context = tls
    elif tls or address.is_tls:
        context = ssl_context(tls if isinstance(tls, Tls) else Tls())
    async with connect_over(partial(open_transport, address, context), **options) as client:
        yield client


async def open_transport(address: BrokerAddress, context: ssl.SSLContext | None) -> trio.abc.Stream:
    """Open TCP, TLS or WebSocket as the address says. raises: OSError, ConnectionLost"""
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
    chosen = ConnectOptions(**options)
    connection = BrokerConnection(open_stream, chosen)
    client = Client(connection, chosen)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(connection.run)
            yield client
            await client.leave()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The nursery's own task raises nothing: the group holds the error of the context's body.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise
