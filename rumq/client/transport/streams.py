"""Opens the byte stream that an address names: TCP, TLS, WebSocket, a Unix socket."""

import ssl

import trio

from rumq.client.transport.address import WEBSOCKET_PATH, BrokerAddress
from rumq.client.transport.tls import open_tls_stream
from rumq.unix_address import Address


async def open_transport(address: BrokerAddress, context: ssl.SSLContext | None) -> trio.abc.Stream:
    """raises: OSError, ConnectionLost"""
    stream: trio.abc.Stream
    if address.is_unix:
        with Address(address.path) as path:
            return await trio.open_unix_socket(path)
    if context is None:
        stream = await trio.open_tcp_stream(address.host, address.port)
    else:
        stream = await open_tls_stream(address.host, address.port, context)
    if not address.is_websocket:
        return stream
    from rumq.client.transport.websocket import open_websocket  # most clients need none

    host = f"[{address.host}]" if ":" in address.host else address.host
    return await open_websocket(stream, f"{host}:{address.port}", address.path or WEBSOCKET_PATH)
