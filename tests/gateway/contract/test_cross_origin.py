"""Pages of other origins may read answers only where the settings list them, and never with a browser's credentials."""

from typing import Any

import pytest
import trio
from starlette.responses import Response

from rumq.errors import ConfigError
from rumq.gateway.contract.cross_origin import CrossOrigin
from rumq.process.wiring.gateway_settings import check_gateway
from rumq.settings.table import Settings
from rumq.settings.table.gateway import Gateway

APP, OTHER = "https://app.example:8443", "https://evil.example"


def asked(
    *origins: str, method: str = "GET", path: str = "/api/v1/status", **headers: str
) -> tuple[int, dict[str, str], bool]:
    """Status, headers, and whether the application was asked."""
    seen: list[Any] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)
        await Response(b"{}", 401 if method == "GET" else 405)(scope, receive, send)

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    trio.run(CrossOrigin(app, origins), scope, None, send)
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, bool(seen)


def cors(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control")}


def preflight(*origins: str, origin: str = APP) -> tuple[int, dict[str, str], bool]:
    return asked(
        *origins, method="OPTIONS", origin=origin, access_control_request_method="POST",
        access_control_request_headers="authorization",
    )  # fmt: skip


def test_without_the_setting_nothing_is_allowed_and_nothing_said() -> None:
    status, headers, was_asked = asked(origin=APP)
    assert (status, cors(headers), was_asked) == (401, {}, True) and "vary" not in headers
    status, headers, was_asked = preflight()
    assert (status, cors(headers), was_asked) == (405, {}, True)


def test_a_listed_origin_may_read_also_refusals() -> None:
    status, headers, _ = asked(APP, origin=APP)
    assert status == 401 and headers["access-control-allow-origin"] == APP
    assert headers["vary"] == "Origin" and "rumq-cursor" in headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    "origin", [OTHER, "https://app.example", "http://app.example:8443", f"{APP}.evil.example", "null", ""]
)
def test_another_origin_may_not(origin: str) -> None:
    _, headers, _ = asked(APP, **({"origin": origin} if origin else {}))
    assert cors(headers) == {} and headers["vary"] == "Origin", "a cache must not give it to another one"
    status, headers, was_asked = preflight(APP, origin=origin) if origin else (403, {}, False)
    assert (status, cors(headers), was_asked) == (403, {}, False)


def test_a_preflight_is_answered_without_a_token() -> None:
    status, headers, was_asked = preflight(OTHER, APP)
    assert (status, was_asked) == (204, False)
    assert headers["access-control-allow-origin"] == APP
    assert "authorization" in headers["access-control-allow-headers"]
    assert "DELETE" in headers["access-control-allow-methods"] and headers["access-control-max-age"]


def test_any_origin_is_allowed_without_credentials_only() -> None:
    for headers in (asked("*", origin=OTHER)[1], preflight("*")[1], asked(APP, origin=APP)[1]):
        assert "access-control-allow-credentials" not in headers
    assert asked("*", origin=OTHER)[1]["access-control-allow-origin"] == "*"


def test_files_and_health_are_not_for_other_pages() -> None:
    for path in ("/", "/page/app.js", "/metrics", "/healthz"):
        assert cors(asked("*", origin=OTHER, path=path)[1]) == {}


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "https://App.example", "null", "ftp://a"])
def test_what_is_no_origin_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"gateway\.cors_origins"):
        check_gateway(Settings(gateway=Gateway(cors_origins=(origin,))))
