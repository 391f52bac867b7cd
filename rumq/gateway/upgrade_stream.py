"""The stream of an HTTP connection, from which a request for MQTT over WebSocket is taken before hypercorn sees it.

So a WebSocket has bounds of its own: nothing is gathered, decompressed or queued in between."""

from __future__ import annotations

from typing import Any

import trio

MQTT = (b"GET /mqtt ", b"GET /mqtt?")
HEAD_BYTES_MAX = 16_384
END = b"\r\n\r\n"


class UpgradeStream:
    """scope: is cancelled once a request was taken, which `taken` has, with what was read behind it

    at_request: whether the next bytes are the begin of a request; is set by the owner"""

    def __init__(self, stream: Any, scope: trio.CancelScope) -> None:
        self._stream, self._scope = stream, scope
        self.at_request = True
        self.taken = b""

    def __getattr__(self, name: str) -> Any:
        """What else hypercorn asks of a stream, with or without TLS."""
        return getattr(self._stream, name)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytes(await self._stream.receive_some(max_bytes))
        if not self.at_request:
            return data
        while data and any(each.startswith(data) for each in MQTT):
            more = await self._stream.receive_some(max_bytes)
            if not more:
                return data
            data += more
        self.at_request = not data
        if not data.startswith(MQTT):
            return data
        while END not in data and len(data) <= HEAD_BYTES_MAX:
            more = await self._stream.receive_some(max_bytes)
            if not more:
                return data
            data += more
        if b"\r\nupgrade: websocket" not in data.partition(END)[0].lower():
            return data
        self.taken = data
        self._scope.cancel()
        await trio.sleep_forever()
        raise AssertionError

    async def send_eof(self) -> None:
        if not self.taken:
            await self._stream.send_eof()

    async def aclose(self) -> None:
        if not self.taken:
            await self._stream.aclose()
