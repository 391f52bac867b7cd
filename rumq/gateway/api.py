"""The answers of the REST interface: operations of the admin interface by their table, publish, records, users, rules.

A fault of the request is 400 with a sentence; a shard that does not answer is 503. Every action is audited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, get_args

import msgspec
import trio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import streams_of
from rumq.admin.operations import OPERATIONS, Operation, Raw, Reader
from rumq.auth.identity import Identity
from rumq.auth.permit import Action
from rumq.errors import ClientError, RumqError
from rumq.errors import Refused as MqttRefused
from rumq.gateway import endpoints as e
from rumq.gateway.context import Context
from rumq.gateway.event_feed import TooManyWait
from rumq.gateway.history.series import SERIES
from rumq.gateway.messages import Published, RefusedMessage, decoded
from rumq.gateway.openapi import JSON, LINES, MSGPACK, ROWS_MAX
from rumq.gateway.request_body import body_of
from rumq.gateway.retained_deletion import clear
from rumq.gateway.shard_client import Away
from rumq.gateway.tokens import Token

T = TypeVar("T", bound=q.Request)
Answered = TypeVar("Answered")
READS_MAX = 4  # requests that read the log at once


class Unavailable(Exception):
    """503: the broker cannot answer now."""


class WrongKind(Exception):
    """415: the body is of a kind that is not understood."""


class Api:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._reads = trio.CapacityLimiter(READS_MAX)

    # Operations of the admin interface

    async def query(self, operation: Operation, request: Request, token: Token) -> Response:
        asked = parameters_of(request, operation.request)
        if getattr(asked, "limit", 0) > ROWS_MAX:
            raise ValueError(f"an answer has at most {ROWS_MAX} rows: give a smaller limit, and an offset")
        access = self._context.access_of(token)
        access.check(operation.tells, asked)
        found = await self._ask(operation, asked, access.maybe_reader(operation.tells))
        access.leave_out(operation.tells, found)
        return as_json(found)

    async def act(self, operation: Operation, request: Request, token: Token) -> Response:
        raw = msgspec.json.decode(await body_of(request, self._context.settings.body_bytes_max) or b"{}")
        if not isinstance(raw, dict):
            raise ValueError("the body is an object with the fields of the action")
        asked = msgspec.convert(raw, operation.request)
        try:
            found = await self._ask(operation, asked)
        except Exception as fault:
            self._audit(operation, asked, token, f"{fault}")
            raise
        self._audit(operation, asked, token, "", found)
        return as_json(found)

    async def _ask(self, operation: Operation, asked: q.Request, reader: Reader | None = None) -> a.Answer:
        try:
            return await self._context.shards.ask(operation, asked, reader)
        except Away as fault:
            raise Unavailable(str(fault)) from None
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
        self._context.access_of(token).check(OPERATIONS["events"].tells, asked)
        wait = min(asked.wait, 0.8 * self._context.settings.request_seconds_max)
        try:
            return as_json(await while_heard(request, partial(self._context.events.answer, asked, wait)))
        except TooManyWait as fault:
            raise Unavailable(str(fault)) from None

    async def history(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, e.PastRange)
        names = list(SERIES) if asked.names is None else list(dict.fromkeys(asked.names.split(",")))
        if unknown := sorted(set(names) - SERIES.keys()):
            raise ValueError(f"there is no series {unknown[0]!r}; there are {', '.join(SERIES)}")
        found = self._context.history.points(names, asked.seconds, asked.points)
        series = {
            name: [None if value != value else value for value in values]
            for name, values in found.values.items()
        }
        known = [e.SeriesName(name=each.name, unit=each.unit, help=each.help) for each in SERIES.values()]
        return as_json(
            e.History(start_us=found.start * 1_000_000, step_seconds=found.step, series=series, names=known)
        )

    # Messages

    async def publish(self, request: Request, token: Token) -> Response:
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind not in (JSON, MSGPACK):
            raise WrongKind(f"send {JSON} or {MSGPACK}")
        body = await body_of(request, self._context.settings.body_bytes_max)
        messages = decoded(body, is_msgpack=kind == MSGPACK)
        try:
            refused = await self._context.publishers.publish(token.user, messages)
        except MqttRefused as fault:
            raise Unavailable(str(fault)) from None
        except (ClientError, OSError) as fault:
            raise Unavailable(
                f"the broker took the connection away: {fault}; what was sent may be published"
            ) from None
        rows = [
            RefusedMessage(number=number, reason=int(reason), why=why or reason.text)
            for number, (reason, why) in sorted(refused.items())
        ]
        return as_json(Published(accepted=len(messages) - len(rows), refused=rows), 422 if rows else 200)

    async def clear(self, request: Request, token: Token) -> Response:
        """Delete retained messages: those that the token's user may read, as far as it may publish retained ones."""
        asked = msgspec.json.decode(
            await body_of(request, self._context.settings.body_bytes_max) or b"{}", type=e.Clear
        )
        operation = OPERATIONS["retained"]
        access = self._context.access_of(token)

        async def find(page: q.Retained) -> a.Retained:
            found = await self._ask(operation, page, access.maybe_reader(operation.tells))
            access.leave_out(operation.tells, found)
            assert isinstance(found, a.Retained)
            return found

        found, why = None, ""
        try:
            access.check(operation.tells, asked)
            found = await clear(asked, token.user, find, self._context.publishers)
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

    async def records(self, request: Request, token: Token) -> Response:
        context, kind = self._context, wanted_kind(request)
        asked = parameters_of(request, e.Fetch)
        access = context.access_of(token)
        access.check(e.RECORDS, asked)

        def read() -> Any:
            return context.records.fetch(
                asked.topic, asked.start, asked.cursor, asked.limit, access.may_read, context.now_us(),
                is_binary=kind == MSGPACK, contains=(asked.contains or "").encode(errors="surrogatepass"),
            )  # fmt: skip

        found = await self._read(read)
        if kind == LINES:
            headers = {"rumq-cursor": found.cursor or "", "rumq-lost": str(found.lost)}
            lines = b"".join(msgspec.json.encode(record) + b"\n" for record in found.records)
            return Response(lines, headers=headers, media_type=LINES)
        return as_kind(found, kind)

    async def value(self, request: Request, token: Token) -> Response:
        context, kind = self._context, wanted_kind(request)
        asked = parameters_of(request, e.LastValue)
        access = context.access_of(token)
        access.check(e.VALUE, asked)

        def read() -> Any:
            return context.records.last(
                asked.topic, access.may_read, context.now_us(), is_binary=kind == MSGPACK
            )

        return as_kind(e.Value(record=await self._read(read)), kind)

    async def _read(self, read: Any) -> Any:
        try:
            return await trio.to_thread.run_sync(read, limiter=self._reads, abandon_on_cancel=True)
        except OSError as fault:
            raise Unavailable(f"the log cannot be read: {fault.strerror or fault}") from None

    # What the settings say

    async def me(self, request: Request, token: Token) -> Response:
        reads = self._context.access_of(token).reach
        return as_json(e.Me(name=token.name, roles=sorted(token.roles), user=token.user, reads=reads))

    async def streams(self, request: Request, token: Token) -> Response:
        found = await self._ask(OPERATIONS["partitions"], q.Nothing())
        assert isinstance(found, a.Partitions)
        return as_json(streams_of(found.partitions))

    async def settings(self, request: Request, token: Token) -> Response:
        return as_json(e.EffectiveSettingsAnswer(settings=self._context.effective_settings()))

    async def users(self, request: Request, token: Token) -> Response:
        return as_json(e.Users(users=list(self._context.users)))

    async def rules(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, e.Explain)
        if asked.action not in get_args(Action):
            raise ValueError(f"action: one of {', '.join(get_args(Action))}")
        action: Any = asked.action
        rules = self._context.rules
        if rules is None:
            return as_json(e.Rules(rules=False, allowed=True, reasons=[]))
        who = Identity(asked.user)
        reasons = rules.explain(who, asked.client, action, asked.topic)
        permit = rules.permit(who, asked.client)
        allowed = permit is None or permit.may(action, asked.topic)
        told = [e.RuleReason(rule=n, effect=effect, filter=written) for n, effect, written in reasons]
        return as_json(e.Rules(rules=True, allowed=allowed, reasons=told))


async def while_heard(request: Request, answer: Callable[[], Awaitable[Answered]]) -> Answered:
    """The answer, unless the client leaves before. raises: ClientDisconnect, and what the answer raises"""
    found: list[Answered] = []
    fault: Exception = ClientDisconnect()
    async with trio.open_nursery() as nursery:

        async def listen() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(listen)
        try:
            found.append(await answer())
        except Exception as raised:  # not as a group of the nursery
            fault = raised
        nursery.cancel_scope.cancel()
    if not found:
        raise fault
    return found[0]


def parameters_of(request: Request, kind: type[T]) -> T:
    """The query parameters of a request. raises: ValueError"""
    given: Raw = dict(request.query_params)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown := sorted(given.keys() - known):
        raise ValueError(f"unknown parameter {unknown[0]!r}; known are {', '.join(sorted(known)) or 'none'}")
    return msgspec.convert(given, kind, strict=False)


def wanted_kind(request: Request) -> str:
    accepted = request.headers.get("accept", "")
    return next((kind for kind in (MSGPACK, LINES) if kind in accepted), JSON)


def as_json(found: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(found), status, media_type=JSON)


def as_kind(found: Any, kind: str) -> Response:
    if kind == MSGPACK:
        return Response(msgspec.msgpack.encode(found), media_type=MSGPACK)
    return as_json(found)
