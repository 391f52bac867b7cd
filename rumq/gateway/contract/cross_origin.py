"""Pages of other origins: which may read the answers of /api/, by CORS (the Fetch standard, 3.2). None by default.

Credentials of browsers (cookies, certificates) are never allowed: a page gives its token by itself."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rumq.gateway.access.origins import ANY
from rumq.gateway.contract.problems import problem

PATHS = "/api/"
METHODS = "GET, POST, DELETE"
ASKED_HEADERS = "authorization, content-type, last-event-id"
TOLD_HEADERS = "rumq-cursor, rumq-lost, rumq-more, retry-after, www-authenticate"
PREFLIGHT_SECONDS = "600"  # so long a browser need not ask again


class CrossOrigin:
    """origins: whose pages may ask; "*": all; none: the application is left as it is"""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self._app, self._origins = app, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._origins or scope["type"] != "http" or not scope["path"].startswith(PATHS):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        allowed = self._allowed(origin)
        if scope["method"] == "OPTIONS" and origin and "access-control-request-method" in headers:
            await self._preflight(origin, allowed)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(raw=list(message.get("headers", ())))
                answer.add_vary_header("Origin")
                if allowed:
                    answer["access-control-allow-origin"] = allowed
                    answer["access-control-expose-headers"] = TOLD_HEADERS
                message = {**message, "headers": answer.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _allowed(self, origin: str) -> str:
        """What Access-Control-Allow-Origin says; "": nothing."""
        if ANY in self._origins:
            return ANY if origin else ""
        return origin if origin in self._origins else ""

    def _preflight(self, origin: str, allowed: str) -> Response:
        if not allowed:
            response = problem("forbidden", f"pages of {origin[:200]!r} may not ask: list it in gateway.cors_origins")
            response.headers["vary"] = "Origin"
            return response
        return Response(
            status_code=204,
            headers={
                "access-control-allow-origin": allowed, "access-control-allow-methods": METHODS,
                "access-control-allow-headers": ASKED_HEADERS, "access-control-max-age": PREFLIGHT_SECONDS,
                "vary": "Origin",
            },
        )  # fmt: skip
