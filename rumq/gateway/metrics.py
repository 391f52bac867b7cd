"""/metrics: the shards are asked at most once a second, however often it is scraped."""

from __future__ import annotations

import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.figures import ShardFigures
from rumq.admin.operations import OPERATIONS
from rumq.errors import RumqError
from rumq.gateway.context import Context
from rumq.gateway.exposition import exposition, of_client

REMEMBER_SECONDS = 1.0


class Metrics:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._text = b""
        self._made_at = float("-inf")
        self._asking = trio.Lock()

    async def text(self) -> bytes:
        """The metrics, at most a second old."""
        async with self._asking:  # who comes meanwhile gets the same
            if self._context.now() - self._made_at >= REMEMBER_SECONDS:
                self._text = await self._made()
                self._made_at = self._context.now()
            return self._text

    async def of_client(self, client_id: str) -> bytes:
        """Series of one client; none if it has no session."""
        try:
            found = await self._context.shards.ask(OPERATIONS["client"], q.OneClient(client=client_id))
        except (RumqError, ValueError):
            return b""
        assert isinstance(found, a.ClientDetail)
        return of_client(found.client) if found.client is not None else b""

    async def _made(self) -> bytes:
        context = self._context
        shards: list[ShardFigures] = []
        up = 1.0
        try:
            found = await context.shards.ask(OPERATIONS["metrics"], q.Nothing())
            assert isinstance(found, a.Metrics)
            shards = found.shards
        except (RumqError, ValueError):
            up = 0.0
        connections, shed = context.connections()
        values = {
            "rumq_up": up, "rumq_gateway_connections": float(connections),
            "rumq_gateway_connections_shed_total": float(shed),
            "rumq_gateway_refused_total": float(context.admission.refused),
            "rumq_gateway_published_total": float(context.publishers.published),
        }  # fmt: skip
        return exposition(shards, values, context.requests)
