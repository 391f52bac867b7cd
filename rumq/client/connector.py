"""`connect`: a context manager around a connected client; it disconnects cleanly at the end."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import trio

from rumq.client.client import Client
from rumq.client.outbox.opening import open_outbox
from rumq.client.outbox.outbox import ClientOutbox, OutboxOptions
from rumq.client.session.connection import BrokerConnection
from rumq.client.session.options import ConnectOptions
from rumq.client.session.packet_stream import OpenStream
from rumq.client.session.redirects import OpenAt
from rumq.client.transport.address import BrokerAddress, parse_url
from rumq.client.transport.streams import open_transport
from rumq.client.transport.tls import Tls, ssl_context


@asynccontextmanager
async def connect(
    host: str = "localhost",
    port: int | None = None,
    *,
    tls: bool | Tls | ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect over TCP, TLS, WebSocket or a Unix socket. options: see `ConnectOptions`; all have defaults.

    host             a name or an address, or a URL: mqtts://user:password@broker:8883, ws:// and wss:// likewise,
                     unix:///run/broker.socket
    port             that of the URL, or the standard one [1883; with TLS 8883]
    tls              True: trust the system's certificate authorities; `Tls` names files; or an ssl.SSLContext
    client_id        "": the broker assigns one
    version          5, or 4 for MQTT 3.1.1
    clean_start      forget an earlier session of this client id [True]
    session_expiry   seconds the session outlives the connection, MQTT 5 [0]
    will             a `Will`, published by the broker when the connection is lost or the context ends with an error
    keep_alive       seconds, 0 for none [60]
    username, password  password: also a function, asked at each connection: a token that expires
    login            enhanced authentication, MQTT 5: `ScramLogin(username, password)`
    receive_maximum  QoS 1 and 2 messages the broker may send unacknowledged, MQTT 5 [1000]
    topic_aliases    topics that are sent as numbers, MQTT 5, as many as the broker allows [0]
    reconnect        after a loss connect again, resend and resubscribe: True, or a `Reconnect` [False]
    begin_offline    with reconnect: return at once, whether the broker is there or not [False]
    redirects_max    servers in a row that brokers may name instead of themselves, MQTT 5 [3]
    connect_seconds_max  time for the connection and the broker's answer [10]
    manual_acknowledge   messages are acknowledged by `Client.acknowledge` alone [False]
    store            a directory, or `OutboxOptions`: what is published is kept there first, and forwarded to the broker
                     when there is one; `Client.outbox`. Implies a session, reconnect and begin_offline [None]
    trace            a function that returns the user properties of a trace: `opentelemetry_context` [None]
    properties       more properties of CONNECT, MQTT 5

    raises: Refused, ConnectionLost, LoginFailed, OutboxError; ConfigError for an invalid URL or TLS file
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

    def open_at(host: str, port: int | None) -> OpenStream:
        """Another server is reached in the same way; MQTT 5.0, 4.11."""
        return partial(open_transport, address._replace(host=host, port=port or address.port), context)

    async with connect_over(
        partial(open_transport, address, context), open_at=None if address.is_unix else open_at, **options
    ) as client:
        yield client


@asynccontextmanager
async def connect_over(
    open_stream: OpenStream, *, open_at: OpenAt | None = None, store: str | OutboxOptions | None = None, **options: Any
) -> AsyncIterator[Client]:
    """The same over any stream.

    open_stream: called for each connection; may raise OSError and ConnectionLost
    open_at: what opens a stream to another host and port, None: other servers that the broker names are refused
    """
    chosen = ConnectOptions(**options)
    if store is not None:
        place = OutboxOptions(store) if isinstance(store, str) else store
        async with connect_with_outbox(open_stream, open_at, place, chosen) as client:
            yield client
        return
    async with connect_with(open_stream, open_at, chosen, None) as client:
        yield client


@asynccontextmanager
async def connect_with_outbox(
    open_stream: OpenStream, open_at: OpenAt | None, store: OutboxOptions, options: ConnectOptions
) -> AsyncIterator[Client]:
    """The outbox is opened before the connection, and closed behind it."""
    outbox, log, chosen = await trio.to_thread.run_sync(open_outbox, store, options)
    try:
        async with connect_with(open_stream, open_at, chosen, outbox) as client:
            yield client
            with trio.move_on_after(store.leave_seconds_max):
                await outbox.wait_empty()
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(log.close)


@asynccontextmanager
async def connect_with(
    open_stream: OpenStream, open_at: OpenAt | None, chosen: ConnectOptions, outbox: ClientOutbox | None
) -> AsyncIterator[Client]:
    try:
        async with trio.open_nursery() as nursery:

            async def opened(options: ConnectOptions, outbox: ClientOutbox | None) -> Client:
                connection = BrokerConnection(open_stream, options, open_at, outbox)
                await nursery.start(connection.run)
                return Client(connection, options, another, outbox)

            async def another(changes: dict[str, Any]) -> Client:
                return await opened(replace(chosen, **changes), None)

            if outbox is not None:
                nursery.start_soon(outbox.run)
            client = await opened(chosen, outbox)
            yield client
            await client.leave()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The nursery's own task raises nothing: the group holds the error of the context's body.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise
