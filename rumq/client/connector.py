"""`connect`: a context manager around a connected client; it disconnects cleanly at the end."""

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import trio

from rumq.client.client import Client
from rumq.client.outbox.opening import open_outbox
from rumq.client.outbox.outbox import ClientOutbox, OutboxOptions
from rumq.client.queues.gateway_requests import GatewayAddresses, GatewayRequests
from rumq.client.session.connection import BrokerConnection
from rumq.client.session.options import ConnectOptions, Secret, reconnect_policy
from rumq.client.session.packet_stream import OpenStream
from rumq.client.session.redirects import OpenAt
from rumq.client.transport.address import BrokerAddress, parse_url
from rumq.client.transport.in_turn import InTurn
from rumq.client.transport.streams import open_transport
from rumq.client.transport.tls import Tls, ssl_context


@asynccontextmanager
async def connect(
    host: str | Sequence[str] = "localhost",
    port: int | None = None,
    *,
    tls: bool | Tls | ssl.SSLContext | None = None,
    gateway: str | Sequence[str] | None = None,
    token: Secret | Callable[[], Secret] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect over TCP, TLS, WebSocket or a Unix socket. options: see `ConnectOptions`; all have defaults.

    host             a name or an address, or a URL: mqtts://user:password@broker:8883, ws:// and wss:// likewise,
                     unix:///run/broker.socket; or several, such as the nodes of a cluster, which are tried in turn
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
    gateway          of a rumq broker, for queues: http[s]://host:port, or several [with ws:// and wss:// that place]
    token            for the gateway, from `rumqd token add` [the password]

    raises: Refused, ConnectionLost, LoginFailed, OutboxError; ConfigError for an invalid URL or TLS file
    """
    addresses = [address_of(each, port, is_tls=bool(tls)) for each in ([host] if isinstance(host, str) else host)]
    context, address = tls_context(tls, addresses), addresses[0]
    for name in ("username", "password"):
        if (found := getattr(address, name)) is not None:
            options.setdefault(name, found)

    def open_at(host: str, port: int | None) -> OpenStream:
        """Another server is reached in the same way; MQTT 5.0, 4.11."""
        return partial(open_transport, address._replace(host=host, port=port or address.port), context)

    urls = gateway_urls(gateway, addresses)
    async with connect_over(
        InTurn([partial(open_transport, each, context) for each in addresses]),
        open_at=None if address.is_unix else open_at,
        gateway=GatewayAddresses(urls, options.get("password") if token is None else token, context) if urls else None,
        **options,
    ) as client:
        yield client


def address_of(host: str, port: int | None, *, is_tls: bool) -> BrokerAddress:
    """raises: ConfigError"""
    address = parse_url(host) if "://" in host else BrokerAddress(host, 0, "mqtts" if is_tls else "mqtt")
    if not address.port:
        address = address._replace(port=8883 if address.is_tls else 1883)
    return address if port is None else address._replace(port=port)


def tls_context(tls: bool | Tls | ssl.SSLContext | None, addresses: Sequence[BrokerAddress]) -> ssl.SSLContext | None:
    """raises: ConfigError; ValueError where there is no address, or one requires TLS and tls is False"""
    if not addresses:
        raise ValueError("connect to whom? the list of hosts is empty")
    if tls is False and any(each.is_tls for each in addresses):
        raise ValueError("an address requires TLS, and tls is False")
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls or any(each.is_tls for each in addresses):
        return ssl_context(tls if isinstance(tls, Tls) else Tls())
    return None


def gateway_urls(gateway: str | Sequence[str] | None, addresses: Sequence[BrokerAddress]) -> tuple[str, ...]:
    """Where requests for queues go: a client that comes by the gateway's WebSocket knows it already."""
    if gateway is not None:
        return (gateway,) if isinstance(gateway, str) else tuple(gateway)
    found = [
        f"{'https' if each.is_tls else 'http'}://{f'[{each.host}]' if ':' in each.host else each.host}:{each.port}"
        for each in addresses
        if each.is_websocket
    ]
    return tuple(found)


@asynccontextmanager
async def connect_over(
    open_stream: OpenStream, *, open_at: OpenAt | None = None, store: str | OutboxOptions | None = None,
    gateway: GatewayAddresses | None = None, **options: Any,
) -> AsyncIterator[Client]:  # fmt: skip
    """The same over any stream.

    open_stream: called for each connection; may raise OSError and ConnectionLost
    open_at: what opens a stream to another host and port, None: other servers that the broker names are refused
    """
    chosen = ConnectOptions(**options)
    requests = None
    if gateway is not None:
        requests = GatewayRequests(gateway, reconnect_policy(chosen), chosen.connect_seconds_max)
    try:
        if store is not None:
            place = OutboxOptions(store) if isinstance(store, str) else store
            async with connect_with_outbox(open_stream, open_at, place, chosen, requests) as client:
                yield client
            return
        async with connect_with(open_stream, open_at, chosen, None, requests) as client:
            yield client
    finally:
        if requests is not None:
            with trio.CancelScope(shield=True):
                await requests.close()


@asynccontextmanager
async def connect_with_outbox(
    open_stream: OpenStream,
    open_at: OpenAt | None,
    store: OutboxOptions,
    options: ConnectOptions,
    requests: GatewayRequests | None,
) -> AsyncIterator[Client]:
    """The outbox is opened before the connection, and closed behind it."""
    outbox, log, chosen = await trio.to_thread.run_sync(open_outbox, store, options)
    try:
        async with connect_with(open_stream, open_at, chosen, outbox, requests) as client:
            yield client
            with trio.move_on_after(store.leave_seconds_max):
                await outbox.wait_empty()
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(log.close)


@asynccontextmanager
async def connect_with(
    open_stream: OpenStream,
    open_at: OpenAt | None,
    chosen: ConnectOptions,
    outbox: ClientOutbox | None,
    requests: GatewayRequests | None,
) -> AsyncIterator[Client]:
    try:
        async with trio.open_nursery() as nursery:

            async def opened(options: ConnectOptions, outbox: ClientOutbox | None) -> Client:
                connection = BrokerConnection(open_stream, options, open_at, outbox)
                await nursery.start(connection.run)
                return Client(connection, options, another, outbox, requests)

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
