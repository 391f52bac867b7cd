"""The answers about consumer groups of Kafka's clients, which the Kafka server of this node gives; and what is done to
them there. Every action is audited.

Groups belong to users, and these answers are of all of them: for administrators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin import requests as q
from rumq.admin.kafka_groups import KAFKA_OPERATIONS, GroupDone, KafkaRows
from rumq.admin.operations import NotFound
from rumq.gateway.access.tokens import Token
from rumq.gateway.broker.service_client import KafkaGroupInUse, KafkaServerAway, NotOfKafka
from rumq.gateway.contract.problems import Conflict, Unavailable
from rumq.gateway.handlers.context import BrokerAccess
from rumq.gateway.http.requests import as_json, fields_of, parameters_of
from rumq.settings.table.gateway import Gateway


class KafkaEndpoints:
    def __init__(self, broker: BrokerAccess, settings: Gateway, event: Callable[..., None]) -> None:
        self._broker, self._settings, self._event = broker, settings, event

    async def _query(self, name: str, request: Request, token: Token) -> Response:
        return as_json(await self._ask(name, parameters_of(request, KAFKA_OPERATIONS[name].request)))

    async def _act(self, name: str, request: Request, token: Token) -> Response:
        asked = await fields_of(request, KAFKA_OPERATIONS[name].request, self._settings.body_bytes_max)
        found, why = None, ""
        try:
            found = await self._ask(name, asked)
        except Exception as fault:
            why = str(fault)
            raise
        finally:
            self._event(
                "admin.action", action=name, token=token.name, what=msgspec.to_builtins(asked), why=why,
                result=msgspec.to_builtins(found) if found is not None else None,
            )  # fmt: skip
        return as_json(found)

    kafka_groups = partialmethod(_query, "kafka_groups")
    kafka_lag = partialmethod(_query, "kafka_lag")
    kafka_members = partialmethod(_query, "kafka_members")
    reset_kafka_group = partialmethod(_act, "reset_kafka_group")
    delete_kafka_group = partialmethod(_act, "delete_kafka_group")

    async def _ask(self, name: str, asked: q.Request) -> KafkaRows | GroupDone:
        try:
            return await self._broker.kafka(name, asked)
        except NotOfKafka as fault:
            raise NotFound(str(fault)) from None
        except KafkaGroupInUse as fault:
            raise Conflict(str(fault)) from None
        except KafkaServerAway as fault:
            raise Unavailable(str(fault)) from None
