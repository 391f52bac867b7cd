"""MQTT over WebSocket, as a byte stream for the client. RFC 6455; MQTT 5.0, 6."""

from __future__ import annotations

from collections.abc import Iterator

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from rumq.errors import ConnectionLost

SUBPROTOCOL = "mqtt"
RECEIVE_BYTES_MAX = 2**18
ANSWER_BYTES_MAX = 2**16
NORMAL = 1000


class ClientWebSocketStream(trio.abc.Stream):
    """Bytes in binary messages over another stream; made by `open_websocket`."""

    def __init__(self, below: trio.abc.Stream, wire: WSConnection) -> None:
        self._below, self._wire = below, wire
        self._sending = trio.Lock()  # the reader sends PONG, which must not interleave with the writer's frames

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._send(BytesMessage(data=bytes(data)))

    async def _send(self, event: Event) -> None:
        async with self._sending:
            try:
                frame = self._wire.send(event)
            except LocalProtocolError as fault:
                raise trio.ClosedResourceError("the WebSocket is closed") from fault
            await self._below.send_all(frame)

    async def wait_send_all_might_not_block(self) -> None:
        await self._below.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Received bytes, of any length; empty once the broker has closed."""
        while True:
            found = bytearray()
            for event in self._events():
                if isinstance(event, BytesMessage):
                    found += event.data
                elif isinstance(event, Ping):
                    await self._send(event.response())
                elif isinstance(event, TextMessage):
                    raise trio.BrokenResourceError("the broker sent text, and MQTT is binary")
                elif isinstance(event, CloseConnection):
                    if self._wire.state is ConnectionState.REMOTE_CLOSING:
                        await self._send(event.response())
                    if not found:
                        return b""
            if found:
                return bytes(found)
            if self._wire.state is ConnectionState.CLOSED:
                return b""
            data = await self._below.receive_some(RECEIVE_BYTES_MAX)
            self._wire.receive_data(bytes(data) or None)

    def _events(self) -> Iterator[Event]:
        try:
            yield from self._wire.events()
        except RemoteProtocolError as fault:
            raise trio.BrokenResourceError(f"the broker broke WebSocket: {fault}") from fault

    async def aclose(self) -> None:
        try:
            if self._wire.state is ConnectionState.OPEN:
                await self._send(CloseConnection(code=NORMAL))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the other side is gone already
        finally:
            await self._below.aclose()


async def open_websocket(below: trio.abc.Stream, host: str, path: str) -> ClientWebSocketStream:
    """WebSocket handshake. raises: ConnectionLost with the HTTP answer, and closes `below`"""
    wire = WSConnection(ConnectionType.CLIENT)
    try:
        await below.send_all(wire.send(Request(host=host, target=path, subprotocols=[SUBPROTOCOL])))
        await wait_accepted(below, wire)
    except (trio.BrokenResourceError, RemoteProtocolError) as fault:
        await trio.aclose_forcefully(below)
        raise ConnectionLost(f"WebSocket at {host}{path}: the answer is not WebSocket ({fault})") from fault
    except BaseException:
        await trio.aclose_forcefully(below)
        raise
    return ClientWebSocketStream(below, wire)


async def wait_accepted(below: trio.abc.Stream, wire: WSConnection) -> None:
    """Wait for the answer. raises: ConnectionLost, RemoteProtocolError"""
    refusal: RejectConnection | None = None
    words = bytearray()
    is_over = False
    while not is_over and (data := await below.receive_some(RECEIVE_BYTES_MAX)):
        wire.receive_data(bytes(data))
        for event in wire.events():
            if isinstance(event, AcceptConnection):
                if event.subprotocol != SUBPROTOCOL:
                    raise ConnectionLost("the WebSocket's peer does not speak MQTT")
                return
            if isinstance(event, RejectConnection):
                refusal, is_over = event, not event.has_body
            elif isinstance(event, RejectData):
                words += event.data
                is_over = event.body_finished or len(words) > ANSWER_BYTES_MAX
    if refusal is None:
        raise ConnectionLost("the broker closed it instead of an answer: this may be no port for WebSocket")
    said = bytes(words[:200]).decode("utf-8", "replace").strip()
    raise ConnectionLost(f"no WebSocket here: HTTP status {refusal.status_code}: {said}".rstrip(": "))
