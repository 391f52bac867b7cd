"""The answer to `publish`: which messages the broker has taken, and where they lie in the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import trio
from starlette.requests import Request
from starlette.responses import Response

from rumq.client.session.messages import Outgoing
from rumq.errors import ClientError
from rumq.errors import Refused as MqttRefused
from rumq.gateway.access.tokens import Token
from rumq.gateway.broker.publishers import PublishConnection, PublishConnections
from rumq.gateway.contract import endpoints as e
from rumq.gateway.contract.messages import Published, RefusedMessage, RefusedMessages, decoded
from rumq.gateway.contract.problems import Unavailable, WrongKind, fields_of, response_of
from rumq.gateway.http.media_types import JSON, MSGPACK, MSGPACK_TOO
from rumq.gateway.http.request_body import body_of
from rumq.gateway.http.requests import as_json, parameters_of
from rumq.gateway.records.positions import SEARCH_SECONDS_MAX, SEARCH_SECONDS_MIN, Position, PositionSearch
from rumq.gateway.records.records import ServedRecords

Answered = TypeVar("Answered")
SEARCHES_MAX = 2  # that read the log at once
LOOK_SECONDS = 0.02


class PublishEndpoint:
    def __init__(self, records: ServedRecords, publishers: PublishConnections, body_bytes_max: int) -> None:
        self._records, self._publishers, self._body_bytes_max = records, publishers, body_bytes_max
        self._searches = trio.CapacityLimiter(SEARCHES_MAX)

    async def publish(self, request: Request, token: Token) -> Response:
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON and kind not in MSGPACK_TOO:
            raise WrongKind(f"cannot take {kind[:100]!r}: send {JSON} or {MSGPACK}")
        asked = parameters_of(request, e.Publish)
        body = await body_of(request, self._body_bytes_max)
        messages = decoded(body, is_msgpack=kind != JSON)
        begin = {}
        if asked.positions:
            begin = await self._on_thread(self._records.views.ends)
        try:
            refused, publisher = await self._publishers.publish(token.user, messages, is_located=asked.positions)
        except MqttRefused as fault:
            raise Unavailable(str(fault)) from None
        except (ClientError, OSError) as fault:
            raise Unavailable(f"the broker took the connection away: {fault}; what was sent may be published") from None
        positions: list[Position | None] = []
        if asked.positions:
            positions = await self._positions(begin, publisher, messages, refused)
        rows = [
            RefusedMessage(number=number, reason=int(reason), why=why or reason.text)
            for number, (reason, why) in sorted(refused.items())
        ]
        accepted = len(messages) - len(rows)
        if not rows:
            return as_json(Published(accepted=accepted, positions=positions))
        first = rows[0]
        detail = f"{len(rows)} of {len(messages)} were refused; number {first.number}: {first.why}"
        return response_of(
            RefusedMessages(
                **fields_of("refused-messages", detail), accepted=accepted, refused=rows, positions=positions
            )
        )

    async def _positions(
        self,
        begin: dict[str, int],
        publisher: PublishConnection,
        messages: Sequence[Outgoing],
        refused: Mapping[int, object],
    ) -> list[Position | None]:
        """None for those that are not found in time: they are published all the same."""
        search = PositionSearch(self._records, begin, publisher.client_id, publisher.claims, messages, refused)
        try:
            with trio.move_on_after(publisher.search_seconds):
                while not search.is_over:
                    await self._on_thread(search.look)
                    if not search.is_over:
                        await trio.sleep(LOOK_SECONDS)
        except Unavailable:
            pass  # the log cannot be read here; the broker has the messages
        # Where messages are not found, as their partition has no copy here, later ones are not waited for so long.
        publisher.search_seconds = (
            SEARCH_SECONDS_MAX if search.is_over else max(SEARCH_SECONDS_MIN, publisher.search_seconds / 2)
        )
        return [search.found.get(number) for number in range(len(messages))]

    async def _on_thread(self, call: Callable[[], Answered]) -> Answered:
        try:
            return await trio.to_thread.run_sync(call, limiter=self._searches)
        except OSError as fault:
            raise Unavailable(f"the log cannot be read: {fault.strerror or fault}") from None
