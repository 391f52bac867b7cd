"""/metrics: made at most once a second, however often it is scraped."""

from __future__ import annotations

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.figures import ServiceFigures, ShardFigures
from rumq.admin.operations import OPERATIONS
from rumq.errors import RumqError
from rumq.gateway.handlers.context import Context
from rumq.gateway.metrics.exposition import exposition, of_client


class Metrics:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._text = b""
        self._made_at = float("-inf")

    async def text(self) -> bytes:
        """The metrics, at most a second old."""
        asked_at, shards = await self._context.figures.figures()
        if asked_at != self._made_at:
            cluster = await self._context.shards.maybe_cluster()
            services = await self._context.services()
            self._made_at, self._text = asked_at, self._made(shards, cluster, services)
        return self._text

    async def of_client(self, client_id: str) -> bytes:
        """Series of one client; none if it has no session."""
        try:
            found = await self._context.shards.ask(OPERATIONS["client"], q.OneClient(client=client_id))
        except (RumqError, ValueError):
            return b""
        assert isinstance(found, a.ClientDetail)
        return of_client(found.client) if found.client is not None else b""

    def _made(
        self, shards: list[ShardFigures] | None, cluster: a.Cluster | None, services: ServiceFigures | None
    ) -> bytes:
        context = self._context
        connections, shed = context.connections()
        values = {
            "rumq_up": float(shards is not None), "rumq_gateway_connections": float(connections),
            "rumq_gateway_mqtt_clients": float(context.relays.count),
            "rumq_gateway_connections_shed_total": float(shed),
            "rumq_gateway_refused_total": float(context.admission.refused),
            "rumq_gateway_published_total": float(context.publishers.published),
            "rumq_spans_exported_total": float(context.spans.exported),
            "rumq_spans_lost_total": float(context.spans.lost),
        }  # fmt: skip
        return exposition(shards or [], values, context.requests, cluster, context.certificates.states, services)
