"""The answers about records of the log: pages of them, the newest of a topic, and requests that follow the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
import trio
from starlette.requests import Request
from starlette.responses import Response

from rumq.auth.quota_holder import holder_of
from rumq.gateway.access.tokens import Token
from rumq.gateway.contract import endpoints as e
from rumq.gateway.contract.problems import Unavailable, problem_of
from rumq.gateway.handlers.context import GatewayRights, LogAccess
from rumq.gateway.handlers.event_stream import PIECE_BYTES_MAX, PIECE_RECORDS_MAX, EventStream
from rumq.gateway.handlers.log_watcher import LogWatcher
from rumq.gateway.http.media_types import EVENTS, JSON, LINES, MSGPACK
from rumq.gateway.http.requests import address_of, as_json, parameters_of, while_heard
from rumq.gateway.records.records import BYTES_MAX, Records, RecordSlice, text_of

READS_MAX = 4  # requests that read the log at once
Read = TypeVar("Read")


class RecordEndpoints:
    def __init__(self, log: LogAccess, rights: GatewayRights, request_seconds_max: float) -> None:
        self._log, self._rights, self._request_seconds_max = log, rights, request_seconds_max
        self._reads = trio.CapacityLimiter(READS_MAX)

    async def records(self, request: Request, token: Token) -> Response:
        kind = wanted_kind(request)
        asked = parameters_of(request, e.Fetch)
        self._rights.topics_of(token).check(e.RECORDS, asked)
        if kind == EVENTS:
            return await self._stream(request, token, asked)
        watcher = LogWatcher(self._log, self._rights, token, asked, self._read, is_binary=kind == MSGPACK)
        wait = min(asked.wait, 0.8 * self._request_seconds_max)
        look = partial(watcher.next_piece, asked.limit, BYTES_MAX, wait)
        if not wait:
            piece = await look()
        else:
            with self._log.followed.place(holder_of(address_of(request)), token.name):
                piece = await while_heard(request, look)
        return as_records(piece, kind)

    async def _stream(self, request: Request, token: Token, asked: e.Fetch) -> Response:
        """raises: TooManyWatch, ValueError, Unavailable, for which it is too late once the stream has begun"""
        if seen := request.headers.get("last-event-id"):
            asked = msgspec.structs.replace(asked, cursor=seen)
        place = partial(self._log.followed.place, holder_of(address_of(request)), token.name)
        watcher = LogWatcher(self._log, self._rights, token, asked, self._read)
        with place():
            first = await watcher.next_piece(PIECE_RECORDS_MAX, PIECE_BYTES_MAX, 0.0)
        return EventStream(watcher, first, place, problem_of)

    async def value(self, request: Request, token: Token) -> Response:
        kind = wanted_kind(request)
        asked = parameters_of(request, e.LastValue)
        access = self._rights.topics_of(token)
        access.check(e.VALUE, asked)
        last = partial(
            self._log.records.last, asked.topic, access.may_read, self._rights.clock.now_us(), is_binary=kind == MSGPACK
        )
        return as_kind(e.Value(record=await self._read(last)), kind)

    async def _read(self, read: Callable[[], Read]) -> Read:
        """raises: Unavailable, ValueError"""
        try:
            return await trio.to_thread.run_sync(read, limiter=self._reads, abandon_on_cancel=True)
        except OSError as fault:
            raise Unavailable(f"the log cannot be read: {fault.strerror or fault}") from None


def as_records(piece: RecordSlice, kind: str) -> Response:
    cursor = text_of(piece.end)
    if kind == LINES:
        headers = {
            "rumq-cursor": cursor,
            "rumq-lost": str(piece.lost),
            "rumq-more": str(piece.is_more).lower(),
        }
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in piece.records)
        return Response(lines, headers=headers, media_type=LINES)
    return as_kind(Records(records=piece.records, cursor=cursor, more=piece.is_more, lost=piece.lost), kind)


def wanted_kind(request: Request) -> str:
    accepted = request.headers.get("accept", "")
    return next((kind for kind in (EVENTS, MSGPACK, LINES) if kind in accepted), JSON)


def as_kind(found: msgspec.Struct, kind: str) -> Response:
    if kind == MSGPACK:
        return Response(msgspec.msgpack.encode(found), media_type=MSGPACK)
    return as_json(found)
