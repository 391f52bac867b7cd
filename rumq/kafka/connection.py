"""One connection: frames in, requests answered one after the other, answers out.

Requests that come meanwhile stay in the socket, so that a connection holds one answer at most. Who sends nothing, reads
nothing, or sends what is none of the protocol, is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import trio

from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.answers.dispatch import answer, refused_login
from rumq.kafka.answers.fetch_answers import TopicTables
from rumq.kafka.answers.login_answers import KafkaLoginRefused, authenticate
from rumq.kafka.protocol.apis import API_VERSIONS
from rumq.kafka.protocol.errors import ErrorCode, KafkaFault, TooMuch
from rumq.kafka.protocol.frames import FrameCutter, Part, UnknownVersion, answer_frame, offered, parse_request

RECEIVE_BYTES = 1 << 14
LOGIN_BYTES_MAX = 1 << 16  # of a frame before a login
LOGIN_SECONDS_MAX = 30.0  # from the beginning until a login, or the first request of who needs none
SEND_BYTES = 1 << 18  # that are given to the socket at once
SEND_SECONDS, SEND_BYTES_PER_SECOND = 30.0, 1 << 16  # a client takes an answer in so long, and longer if it is large


class ConnectionBounds(NamedTuple):
    request_bytes_max: int
    idle_seconds_max: float


class KafkaConnection:
    def __init__(self, stream: trio.abc.Stream, client: KafkaClient, bounds: ConnectionBounds) -> None:
        self._stream, self._client, self._bounds = stream, client, bounds
        self._cutter = FrameCutter(LOGIN_BYTES_MAX)
        self._tables = TopicTables()

    async def run(self) -> None:
        """Until the client leaves. raises: KafkaFault, trio.BrokenResourceError, OSError"""
        async for frame in self._frames():
            if self._client.takes_raw_login and self._client.mechanism:
                await self._raw_login(frame)
            elif not await self._answer(frame):
                return

    async def _frames(self) -> AsyncIterator[bytes]:
        until_login = trio.current_time() + LOGIN_SECONDS_MAX
        while True:
            for frame in self._cutter.frames():
                yield frame
                self._has_expired()
            if self._client.caller is not None:
                self._cutter.bytes_max = self._bounds.request_bytes_max
                until = trio.current_time() + self._bounds.idle_seconds_max
            else:
                until = until_login
            data: bytes | bytearray = b""
            with trio.move_on_at(until) as waited:
                data = await self._stream.receive_some(RECEIVE_BYTES)
            if waited.cancelled_caught or not data:
                return
            self._has_expired()
            self._cutter.receive(data)

    def _has_expired(self) -> None:
        """raises: KafkaFault for a login that was not repeated in time"""
        caller = self._client.caller
        if caller is not None and caller.expires_us is not None and caller.expires_us <= self._client.door.now_us():
            raise KafkaFault("its token has expired")

    async def _answer(self, frame: bytes) -> bool:
        """Whether the connection goes on."""
        try:
            request = parse_request(frame)
        except UnknownVersion as fault:
            await self._send(answer_frame(API_VERSIONS, 0, fault.correlation, offered(ErrorCode.UNSUPPORTED_VERSION)))
            return True
        goes_on = True
        try:
            body = await answer(self._client, self._tables, request)
        except KafkaLoginRefused as refused:
            body, goes_on = refused_login(request.api, refused.text), False
        if body is None:
            return False
        await self._send(answer_frame(request.api, request.version, request.correlation, body))
        return goes_on

    async def _raw_login(self, data: bytes) -> None:
        """As after SaslHandshake 0: a message alone. raises: KafkaLoginRefused, which has no answer there"""
        body = await authenticate(self._client, data)
        message = body.get("auth_bytes", b"")
        await self._send([len(message).to_bytes(4, "big"), message])

    async def _send(self, parts: list[Part]) -> None:
        """raises: TooMuch for a client that does not take it"""
        size = sum(map(len, parts))
        with self._waiting(size), trio.move_on_after(SEND_SECONDS + size / SEND_BYTES_PER_SECOND) as waited:
            for piece in pieces(parts):
                await self._stream.send_all(piece)
        if waited.cancelled_caught:
            raise TooMuch(f"it does not take an answer of {size} bytes")

    @contextmanager
    def _waiting(self, size: int) -> Iterator[None]:
        """Counted while the client takes it."""
        shares, holders = self._client.door.bounds.waiting, self._client.holders
        shares.add(size, holders)
        try:
            yield
        finally:
            shares.give_back(size, holders)


def pieces(parts: list[Part]) -> Iterable[Part]:
    """Small parts together, large ones in pieces."""
    small = bytearray()
    for part in parts:
        if len(small) + len(part) <= SEND_BYTES:
            small += part
            continue
        if small:
            yield small
            small = bytearray()
        view = memoryview(part)
        for at in range(0, len(view), SEND_BYTES):
            yield view[at : at + SEND_BYTES]
    if small:
        yield small
