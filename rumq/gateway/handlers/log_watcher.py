"""One request that follows the log: pieces of it, each waited for, as long as the token may read them.

Rights are looked at before each piece: a token that is removed, or rules that change, end the request or narrow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from math import inf

import trio

from rumq.gateway.access.tokens import Token
from rumq.gateway.contract import endpoints as e
from rumq.gateway.handlers.context import GatewayRights, LogAccess
from rumq.gateway.records.record_rows import RecordSelection
from rumq.gateway.records.records import RecordSlice, cursor_of, text_of

Read = Callable[[Callable[[], RecordSlice]], Awaitable[RecordSlice]]


class LogWatcher:
    """asked: `cursor`, or else `start`, is where it begins, ValueError for one that is none; read: calls on a thread"""

    def __init__(
        self, log: LogAccess, rights: GatewayRights, token: Token, asked: e.Fetch, read: Read, *,
        is_binary: bool = False,
    ) -> None:  # fmt: skip
        self._log, self._rights, self._token, self._asked = log, rights, token, asked
        self._read, self._is_binary = read, is_binary
        self.cursor = asked.cursor
        if asked.cursor:
            cursor_of(asked.cursor)  # a bad one is the client's fault, whether the broker answers or not

    async def next_piece(self, limit: int, bytes_max: int, seconds: float) -> RecordSlice:
        """The next piece with a record or a loss, or after that time one without, which may have moved the cursor.

        raises: Unauthorized, Forbidden once rights are gone; ValueError for a cursor; Unavailable"""
        until = trio.current_time() + seconds
        lost = 0
        while True:
            moved = self._log.followed.moved
            piece = await self._look(limit, bytes_max)
            self.cursor = text_of(piece.end)
            lost += piece.lost
            left = min(until - trio.current_time(), self._seconds_valid())
            if piece.records or lost or left <= 0:
                return piece._replace(lost=lost)
            if not piece.is_more:
                with trio.move_on_after(left):
                    await moved.wait()

    def _seconds_valid(self) -> float:
        """Until the token expires."""
        expires_us = self._token.expires_us
        return (expires_us - self._rights.clock.now_us()) / 1e6 if expires_us else inf

    async def _look(self, limit: int, bytes_max: int) -> RecordSlice:
        rights, asked = self._rights, self._asked
        rights.admission.check(self._token)
        access = rights.topics_of(self._token)
        access.check(e.RECORDS, asked)
        wanted = RecordSelection(
            asked.topic, access.may_read, rights.clock.now_us(), self._is_binary,
            (asked.contains or "").encode(errors="surrogatepass"),
        )  # fmt: skip
        read = partial(self._log.records.piece, wanted, asked.start, self.cursor, limit, bytes_max)
        return await self._read(read)
