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
from rumq.kafka.parked.empty_fetch import EmptyFetches
from rumq.kafka.parked.parked_connection import ParkedConnection
from rumq.kafka.parked.parked_connections import ParkedConnections
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


class Parking(NamedTuple):
    """descriptor: of the socket"""

    connections: ParkedConnections
    descriptor: int


class KafkaConnection:
    def __init__(
        self, stream: trio.abc.Stream, client: KafkaClient, bounds: ConnectionBounds, parking: Parking | None = None
    ) -> None:
        """parking: where it is while the same Fetch comes again; None: over TLS, where bytes are others each time"""
        self._stream, self._client, self._bounds, self._parking = stream, client, bounds, parking
        self._cutter = FrameCutter(LOGIN_BYTES_MAX)
        self._caller = client.caller  # whom the tables and the empty fetches are of
        self._tables = TopicTables()
        self._empty = EmptyFetches()
        self._may_park = False  # its last request was a Fetch that found nothing
        self._asked_at: float | None = None  # when its next request was there; None: now

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
            data: bytes | bytearray | None = None
            if self._parking is not None and self._may_park and not self._cutter.has_part:
                data, until = await self._parked(self._parking, until)
            if data is None:
                with trio.move_on_at(until):
                    data = await self._stream.receive_some(RECEIVE_BYTES)
            if not data:
                return
            if self._asked_at is None:  # else it was asked before
                self._has_expired()
            self._cutter.receive(data)

    async def _parked(self, parking: Parking, idle_at: float) -> tuple[bytes | None, float]:
        """What came and is to be answered here, None: nothing yet; and until when to wait for more."""
        idle_seconds_max = self._bounds.idle_seconds_max
        parked = ParkedConnection(parking.descriptor, self._client, self._empty, idle_at, idle_seconds_max)
        unparked = await parking.connections.park(parked)
        self._may_park = False
        idle_at = parked.idle_at
        if unparked.unsent:
            await self._send([unparked.unsent])
            idle_at = trio.current_time() + idle_seconds_max
        if unparked.received is None:
            self._has_expired()
        self._asked_at = unparked.asked_at
        return unparked.received, idle_at

    def _has_expired(self) -> None:
        """raises: KafkaFault for a login that was not repeated in time"""
        if self._client.has_expired:
            raise KafkaFault("its token has expired")

    async def _answer(self, frame: bytes) -> bool:
        """Whether the connection goes on."""
        self._client.was_parked = self._asked_at is not None
        self._client.asked_at = trio.current_time() if self._asked_at is None else self._asked_at
        self._client.found_nothing = self._asked_at = None
        self._may_park = False
        if self._caller is not self._client.caller:  # a login was repeated, perhaps with other rights
            self._caller = self._client.caller
            self._tables = TopicTables()
            self._empty.forget()
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
        told = answer_frame(request.api, request.version, request.correlation, body)
        found = self._client.found_nothing
        if found is not None and self._parking is not None:  # before it is sent, as partitions move meanwhile
            self._may_park = self._empty.add(frame, told, found.seconds, found.partitions)
        await self._send(told)
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
