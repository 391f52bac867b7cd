"""The application: routes by the tables, each with its token, role, time limit, and faults as problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

import trio
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rumq.admin.operations import TABLE, Role
from rumq.gateway.access.admission import Unauthorized, check_role
from rumq.gateway.access.tokens import Token
from rumq.gateway.contract.cross_origin import CrossOrigin
from rumq.gateway.contract.docs_page import HEADERS as DOCS_HEADERS
from rumq.gateway.contract.docs_page import docs_page
from rumq.gateway.contract.endpoints import ENDPOINTS
from rumq.gateway.contract.openapi import description, path_of
from rumq.gateway.contract.problems import DOCS, EXPECTED, problem, problem_of
from rumq.gateway.handlers.api import Api
from rumq.gateway.handlers.bridge_endpoints import BridgeEndpoints
from rumq.gateway.handlers.context import Context
from rumq.gateway.handlers.credential_endpoints import CredentialEndpoints
from rumq.gateway.handlers.health import HealthHandler
from rumq.gateway.handlers.kafka_endpoints import KafkaEndpoints
from rumq.gateway.handlers.publish_endpoint import PublishEndpoint
from rumq.gateway.handlers.record_endpoints import RecordEndpoints
from rumq.gateway.handlers.scrape import MetricsHandler
from rumq.gateway.http.media_types import JSON
from rumq.gateway.http.misuse_reports import MisuseReports
from rumq.gateway.http.request_body import TooLarge
from rumq.gateway.http.requests import address_of, as_json
from rumq.gateway.metrics.exposition import CONTENT_TYPE
from rumq.gateway.page_files import PageFiles
from rumq.gateway.queues.consumer_endpoints import ConsumerEndpoints
from rumq.gateway.queues.queue_endpoints import QueueEndpoints
from rumq.version import VERSION

Answer = Callable[[Request, Token], Awaitable[Response]]
Open = Callable[[Request], Awaitable[Response]]
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS")
OF_STATUS = {404: "not-found", 405: "method-not-allowed"}  # of requests that no route takes


class App:
    """The endpoints of one gateway, each wrapped."""

    def __init__(self, context: Context) -> None:
        self._settings, self._event, self._requests = context.settings, context.event, context.figures.requests
        self._rights, self._now = context.rights, context.clock.now
        self._reports = MisuseReports(context.event)
        broker, log, settings = context.broker, context.log, context.settings
        self._api = Api(context)
        self._health = HealthHandler(broker.shards, self._now)
        self._metrics = MetricsHandler(broker, context.figures, context.rights.admission)
        self._parts = (
            self._api,
            RecordEndpoints(log, context.rights, settings.request_seconds_max),
            PublishEndpoint(log.records, broker.publishers, settings.body_bytes_max),
            KafkaEndpoints(broker, settings, context.event),
            BridgeEndpoints(context.figures, context.rights),
            CredentialEndpoints(context.rights, broker.shards, settings, context.event),
            QueueEndpoints(context.queues, settings, context.event),
            ConsumerEndpoints(context.queues, log.followed, context.rights.admission, settings),
        )
        self._page = PageFiles()

    def build(self) -> Starlette:
        api = self._api
        routes = []
        own = {endpoint.path for endpoint in ENDPOINTS}
        for operation in TABLE:
            if path_of(operation) in own:
                continue
            answer = partial(api.act if operation.is_action else api.query, operation)
            method = "POST" if operation.is_action else "GET"
            routes.append(self._route(path_of(operation), answer, operation.role, method))
        for endpoint in ENDPOINTS:
            if endpoint.role is None:
                routes.append(self._open(endpoint.path, getattr(self._health, endpoint.name)))
            else:
                answer = getattr(next(each for each in self._parts if hasattr(each, endpoint.name)), endpoint.name)
                routes.append(self._route(endpoint.path, answer, endpoint.role, endpoint.method.upper()))
        described = description(VERSION)
        document, docs = as_json(described).body, docs_page(described).encode()

        async def openapi(request: Request) -> Response:
            return Response(document, media_type=JSON)

        async def documentation(request: Request) -> Response:
            return Response(docs, headers=DOCS_HEADERS, media_type="text/html")

        async def metrics(request: Request, token: Token | None = None) -> Response:
            """token: None where metrics are open, for everybody; one client's are not: they say who is here"""
            client = request.query_params.get("client")
            if client and token is None:
                token = self._rights.admission.token_of(
                    request.headers.get("authorization"), address_of(request), self._now()
                )
                check_role(token, "read")
            text = await self._metrics.text()
            if client:
                text += await self._metrics.of_client(client)
            return Response(text, media_type=CONTENT_TYPE)

        routes.append(self._open("/api/v1/openapi.json", openapi))
        routes.append(self._open(DOCS, documentation))
        routes.append(self._open("/", self._page.index))
        routes.append(self._open("/favicon.ico", self._page.icon))
        routes.append(self._open("/page/{path:path}", self._page.file))
        if self._settings.metrics == "open":
            routes.append(self._open("/metrics", metrics))
        else:
            routes.append(self._route("/metrics", metrics, "read", "GET"))
        made = Starlette(
            routes=routes, exception_handlers={HTTPException: self._http_fault},
            middleware=[
                Middleware(self._of_known_hosts),
                Middleware(CrossOrigin, origins=self._settings.cors_origins),
            ],
        )  # fmt: skip
        made.router.redirect_slashes = False  # a name in a path may end with a slash, and no answer is a 307
        return made

    def _of_known_hosts(self, app: ASGIApp) -> ASGIApp:
        """Answer only requests for a host name that is served here."""

        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            why = ""
            if scope["type"] == "http":
                why = self._rights.hosts.refusal(Headers(scope=scope).get("host"))
            if not why:
                await app(scope, receive, send)
                return
            refusal = problem("misdirected", why)
            self._count(method_of(scope["method"]), "*", refusal.status_code, self._now())
            await refusal(scope, receive, send)

        return checked

    def _route(self, path: str, answer: Answer, role: Role | Literal["any"], method: str) -> Route:
        async def endpoint(request: Request) -> Response:
            async def allowed() -> Response:
                address = address_of(request)
                try:
                    header = request.headers.get("authorization")
                    token = self._rights.admission.token_of(header, address, self._now())
                except Unauthorized as fault:
                    if header:
                        self._reports.refused("token", address, fault.why)
                    return await self._refusal(fault, address)
                if role != "any":
                    check_role(token, role)
                try:
                    return await answer(request, token)
                except TooLarge as fault:
                    self._reports.refused("body", address, str(fault))
                    raise

            return await self._guarded(allowed, method, path)

        return Route(path, endpoint, methods=[method])

    def _open(self, path: str, answer: Open) -> Route:
        async def endpoint(request: Request) -> Response:
            async def allowed() -> Response:
                try:
                    return await answer(request)
                except Unauthorized as fault:  # of a part of it that is not open
                    return await self._refusal(fault, address_of(request))

            return await self._guarded(allowed, "GET", path)

        return Route(path, endpoint, methods=["GET"])

    async def _refusal(self, fault: Unauthorized, address: str) -> Response:
        """After a delay that grows with the refusals of the address."""
        admission = self._rights.admission
        if fault.seconds:
            if not admission.has_room(address):
                return problem("too-many-refusals", "too many refusals wait already")
            with admission.delayed(address):
                await trio.sleep(fault.seconds)
        response = problem_of(fault)
        response.headers["www-authenticate"] = 'Bearer realm="rumq"'
        return response

    async def _guarded(self, answer: Callable[[], Awaitable[Response]], method: str, route: str) -> Response:
        """The answer within its time, or the fault as one; counts it."""
        began = self._now()
        response = problem("unavailable", "it took too long")
        with trio.move_on_after(self._settings.request_seconds_max):
            try:
                response = await answer()
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody reads it
            except EXPECTED as fault:
                response = problem_of(fault)
            except Exception as fault:  # ours
                self._event("gateway.failed", exc_info=True)
                response = problem_of(fault)
        self._count(method, route, response.status_code, began)
        response.headers.setdefault("cache-control", "no-store")  # of the operator alone; files of the page have theirs
        response.headers.setdefault("x-content-type-options", "nosniff")
        return response

    def _count(self, method: str, route: str, status: int, began: float) -> None:
        self._requests[method, route, f"{status // 100}xx"].observe(self._now() - began)

    async def _http_fault(self, request: Request, fault: Exception) -> Response:
        """What no route takes: 404, 405."""
        assert isinstance(fault, HTTPException)
        self._count(method_of(request.method), "*", fault.status_code, self._now())
        detail = f"there is nothing at {request.url.path[:200]!r}; /api/v1/docs lists what there is"
        if fault.status_code == 405:
            detail = f"{request.method[:20]} is not taken here"
        response = problem(OF_STATUS.get(fault.status_code, "bad-request"), detail)
        response.headers.update(fault.headers or {})
        return response


def method_of(method: str) -> str:
    """For a label: strangers make up methods."""
    return method if method in METHODS else "other"
