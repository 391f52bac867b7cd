"""The answers of the REST interface: operations of the admin interface by their table, publish, users, rules.

Faults are exceptions, which `rumq.gateway.contract.problems` gives their status. Every action is audited."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import streams_of
from rumq.admin.operations import OPERATIONS, AskingUser, NotFound, Operation
from rumq.auth.identity import Identity
from rumq.auth.permit import Action
from rumq.errors import ClientError, RumqError
from rumq.errors import Refused as MqttRefused
from rumq.gateway.access.tokens import Token
from rumq.gateway.broker.event_feed import TooManyWait
from rumq.gateway.broker.shard_client import ShardAway
from rumq.gateway.contract import endpoints as e
from rumq.gateway.contract.openapi import ROWS_MAX
from rumq.gateway.contract.problems import Unavailable
from rumq.gateway.handlers.context import Context
from rumq.gateway.handlers.retained_deletion import clear
from rumq.gateway.history.series import SERIES
from rumq.gateway.http.requests import as_json, fields_of, parameters_of, while_heard


class Api:
    def __init__(self, context: Context) -> None:
        self._context = context

    # Operations of the admin interface

    async def query(self, operation: Operation, request: Request, token: Token) -> Response:
        asked = parameters_of(request, operation.request)
        if getattr(asked, "limit", 0) > ROWS_MAX:
            raise ValueError(f"an answer has at most {ROWS_MAX} rows: give a smaller limit, and an offset")
        access = self._context.rights.topics_of(token)
        access.check(operation.tells, asked)
        found = await self._ask(operation, asked, access.maybe_reader(operation.tells))
        access.leave_out(operation.tells, found)
        return as_json(found)

    async def act(self, operation: Operation, request: Request, token: Token) -> Response:
        asked = await fields_of(request, operation.request, self._context.settings.body_bytes_max)
        try:
            found = await self._ask(operation, asked)
        except Exception as fault:
            self._audit(operation, asked, token, f"{fault}")
            raise
        self._audit(operation, asked, token, "", found)
        return as_json(found)

    async def _ask(self, operation: Operation, asked: q.Request, reader: AskingUser | None = None) -> a.Answer:
        try:
            return await self._context.broker.shards.ask(operation, asked, reader)
        except ShardAway as fault:
            raise Unavailable(str(fault)) from None
        except NotFound:
            raise
        except RumqError as fault:
            raise ValueError(str(fault)) from None

    def _audit(
        self, operation: Operation, asked: q.Request, token: Token, why: str, found: a.Answer | None = None
    ) -> None:
        self._audited(operation.name, asked, token, why, found)

    def _audited(self, name: str, asked: q.Request, token: Token, why: str, found: a.Answer | None) -> None:
        self._context.event(
            "admin.action", action=name, token=token.name, what=msgspec.to_builtins(asked), why=why,
            result=msgspec.to_builtins(found) if found is not None else None,
        )  # fmt: skip

    async def events(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, e.Events)
        if asked.limit > ROWS_MAX:
            raise ValueError(f"an answer has at most {ROWS_MAX} rows: give a smaller limit")
        self._context.rights.topics_of(token).check(OPERATIONS["events"].tells, asked)
        wait = min(asked.wait, 0.8 * self._context.settings.request_seconds_max)
        try:
            return as_json(await while_heard(request, partial(self._context.broker.events.answer, asked, wait)))
        except TooManyWait as fault:
            raise Unavailable(str(fault)) from None

    async def history(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, e.PastRange)
        names = list(SERIES) if asked.names is None else list(dict.fromkeys(asked.names.split(",")))
        if unknown := sorted(set(names) - SERIES.keys()):
            raise ValueError(f"there is no series {unknown[0]!r}; there are {', '.join(SERIES)}")
        found = self._context.figures.history.points(names, asked.seconds, asked.points)
        series = {
            name: [None if value != value else value for value in values] for name, values in found.values.items()
        }
        known = [e.SeriesName(name=each.name, unit=each.unit, help=each.help) for each in SERIES.values()]
        return as_json(e.History(start_us=found.start * 1_000_000, step_seconds=found.step, series=series, names=known))

    async def clear(self, request: Request, token: Token) -> Response:
        """Delete retained messages: those that the token's user may read, as far as it may publish retained ones."""
        asked = await fields_of(request, e.Clear, self._context.settings.body_bytes_max)
        operation = OPERATIONS["retained"]
        access = self._context.rights.topics_of(token)

        async def find(page: q.Retained) -> a.Retained:
            found = await self._ask(operation, page, access.maybe_reader(operation.tells))
            access.leave_out(operation.tells, found)
            assert isinstance(found, a.Retained)
            return found

        found, why = None, ""
        try:
            access.check(operation.tells, asked)
            found = await clear(asked, token.user, find, self._context.broker.publishers)
        except MqttRefused as fault:
            why = str(fault)
            raise Unavailable(why) from None
        except (ClientError, OSError) as fault:
            why = f"the broker took the connection away: {fault}; some may be deleted"
            raise Unavailable(why) from None
        except Exception as fault:
            why = str(fault)
            raise
        finally:
            self._audited("clear", asked, token, why, found)
        return as_json(found)

    # What the settings say

    async def me(self, request: Request, token: Token) -> Response:
        reads = self._context.rights.topics_of(token).reach
        return as_json(e.Me(name=token.name, roles=sorted(token.roles), user=token.user, reads=reads))

    async def streams(self, request: Request, token: Token) -> Response:
        found = await self._ask(OPERATIONS["partitions"], q.Nothing())
        assert isinstance(found, a.Partitions)
        return as_json(streams_of(found.partitions))

    async def settings(self, request: Request, token: Token) -> Response:
        return as_json(e.EffectiveSettingsAnswer(settings=self._context.effective_settings()))

    async def rules(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, e.Explain)
        if asked.action not in get_args(Action):
            raise ValueError(f"action: one of {', '.join(get_args(Action))}")
        action: Any = asked.action
        rules = self._context.rights.rules
        if rules is None:
            return as_json(e.Rules(rules=False, allowed=True, reasons=[]))
        who = Identity(asked.user)
        reasons = rules.explain(who, asked.client, action, asked.topic)
        permit = rules.permit(who, asked.client)
        allowed = permit is None or permit.may(action, asked.topic)
        told = [e.RuleReason(rule=n, effect=effect, filter=written) for n, effect, written in reasons]
        return as_json(e.Rules(rules=True, allowed=allowed, reasons=told))
