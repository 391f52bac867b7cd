"""/metrics: made at most once a second, however often it is scraped."""

from __future__ import annotations

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.figures import KafkaFigures, ServiceFigures, ShardFigures
from rumq.admin.operations import OPERATIONS
from rumq.errors import RumqError
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.handlers.context import BrokerAccess, GatewayFigures
from rumq.gateway.metrics.exposition import FileFigures, exposition, of_client


class MetricsHandler:
    def __init__(self, broker: BrokerAccess, figures: GatewayFigures, admission: RequestAdmission) -> None:
        self._broker, self._figures, self._admission = broker, figures, admission
        self._text = b""
        self._made_at = float("-inf")

    async def text(self) -> bytes:
        """The metrics, at most a second old."""
        asked_at, shards = await self._figures.scraped.figures()
        if asked_at != self._made_at:
            cluster = await self._broker.shards.maybe_cluster()
            services = await self._figures.services()
            kafka = await self._figures.kafka()
            self._made_at, self._text = asked_at, self._exposition(shards, cluster, services, kafka)
        return self._text

    async def of_client(self, client_id: str) -> bytes:
        """Series of one client; none if it has no session."""
        try:
            found = await self._broker.shards.ask(OPERATIONS["client"], q.OneClient(client=client_id))
        except (RumqError, ValueError):
            return b""
        assert isinstance(found, a.ClientDetail)
        return of_client(found.client) if found.client is not None else b""

    def _exposition(
        self, shards: list[ShardFigures] | None, cluster: a.Cluster | None, services: ServiceFigures | None,
        kafka: KafkaFigures | None,
    ) -> bytes:  # fmt: skip
        broker, figures = self._broker, self._figures
        connections, shed = figures.connections()
        values = {
            "rumq_up": float(shards is not None), "rumq_gateway_connections": float(connections),
            "rumq_gateway_mqtt_clients": float(broker.relays.count),
            "rumq_gateway_connections_shed_total": float(shed),
            "rumq_gateway_refused_total": float(self._admission.refused),
            "rumq_gateway_published_total": float(broker.publishers.published),
            "rumq_spans_exported_total": float(figures.spans.exported),
            "rumq_spans_lost_total": float(figures.spans.lost),
        }  # fmt: skip
        return exposition(
            shards or [], values, figures.requests, cluster, figures.certificates.states,
            FileFigures(figures.functions(), figures.bridges()), services, kafka,
        )  # fmt: skip
