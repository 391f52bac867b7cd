"""What the endpoints have in common: parameters of a request, its address, an answer in JSON, a client that leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
import trio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rumq.admin import requests as q
from rumq.admin.operations import Raw
from rumq.gateway.http.media_types import JSON
from rumq.gateway.http.request_body import body_of

T = TypeVar("T", bound=q.Request)
Body = TypeVar("Body", bound=msgspec.Struct)
Answered = TypeVar("Answered")


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
    """The query parameters of a request, and those in its path. raises: ValueError"""
    given: Raw = dict(request.query_params)
    known = {field.encode_name for field in msgspec.structs.fields(kind)} - request.path_params.keys()
    if unknown := sorted(given.keys() - known):
        raise ValueError(f"unknown parameter {unknown[0]!r}; known are {', '.join(sorted(known)) or 'none'}")
    if request.path_params:
        check_path(request)
    return msgspec.convert(given | request.path_params, kind, strict=False)


def check_path(request: Request) -> None:
    """raises: ValueError: two names that are no UTF-8 must not be the same one"""
    try:
        unquote_to_bytes(request.scope["raw_path"]).decode()
    except UnicodeDecodeError:
        raise ValueError("the path is no UTF-8: escape each byte of a name's UTF-8 form as %XX") from None


async def fields_of(request: Request, kind: type[Body], bytes_max: int) -> Body:
    """The JSON object in the body of a request. raises: ValueError, TooLarge"""
    raw = msgspec.json.decode(await body_of(request, bytes_max) or b"{}")
    if not isinstance(raw, dict):
        raise ValueError("the body is an object with the fields of the request")
    return msgspec.convert(raw, kind)


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def as_json(found: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(found), status, media_type=JSON)
