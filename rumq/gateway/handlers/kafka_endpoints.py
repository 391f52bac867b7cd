"""The answers about consumer groups of Kafka's clients, which the Kafka server of this node gives.

Groups belong to users, and these answers are of all of them: for administrators."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rumq.admin.kafka_groups import KAFKA_QUESTIONS
from rumq.admin.operations import NotFound
from rumq.gateway.access.tokens import Token
from rumq.gateway.broker.service_client import KafkaServerAway, NotOfKafka
from rumq.gateway.contract.problems import Unavailable
from rumq.gateway.handlers.context import BrokerAccess
from rumq.gateway.http.requests import as_json, parameters_of


class KafkaEndpoints:
    def __init__(self, broker: BrokerAccess) -> None:
        self._broker = broker

    async def kafka_groups(self, request: Request, token: Token) -> Response:
        return await self._answer("kafka_groups", request)

    async def kafka_lag(self, request: Request, token: Token) -> Response:
        return await self._answer("kafka_lag", request)

    async def kafka_members(self, request: Request, token: Token) -> Response:
        return await self._answer("kafka_members", request)

    async def _answer(self, name: str, request: Request) -> Response:
        asked = parameters_of(request, KAFKA_QUESTIONS[name][0])
        try:
            return as_json(await self._broker.kafka(name, asked))
        except NotOfKafka as fault:
            raise NotFound(str(fault)) from None
        except KafkaServerAway as fault:
            raise Unavailable(str(fault)) from None
