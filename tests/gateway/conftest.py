"""A broker with its gateway, and requests to it. One for a module: a start takes seconds."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd

ROLES = {"ops": ("read", "publish", "consume", "administer"), "reader": ("read",), "sender": ("publish",)}
RULES = """\
[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay"]
topics = ["plant/#"]

[[rule]]
allow = ["publish", "subscribe", "replay"]
topics = ["open/#"]
"""


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """port: of HTTP; secrets: by name of the token"""

    def __init__(self, broker: Rumqd, secrets: dict[str, str]) -> None:
        self.broker, self.secrets = broker, secrets
        bound = broker.heard(
            lambda event: event["event"] == "listener.bound" and event["protocol"] in ("http", "https")
        )
        self.port = int(bound["port"])

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "ops",
        headers: dict[str, str] | None = None,
    ) -> Answered:
        """body: bytes as they are, anything else as JSON; token: a name, None for no header, or a secret"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {"content-type": "application/json", **(headers or {})}
        if token is not None:
            given["authorization"] = f"Bearer {self.secrets.get(token, token)}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, given)
            response = connection.getresponse()
            return Answered(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, name: str, **more: Any) -> Any:
        answer = self.ask("GET", f"/api/v1/{name}", **more)
        assert answer.status == 200, answer
        return answer.json

    def act(self, name: str, /, **fields: Any) -> Any:
        answer = self.ask("POST", f"/api/v1/actions/{name}", fields)
        assert answer.status == 200, answer
        return answer.json

    def publish(self, *messages: dict[str, Any], token: str = "ops") -> Answered:
        return self.ask("POST", "/api/v1/publish", list(messages), token=token)


def started(path: Path, *settings: str, shards: int = 1) -> Gateway:
    """A broker with a gateway on a free port, three tokens, and one that publishes as anna."""
    data = path / "data"
    data.mkdir(mode=0o700)
    secrets = {}
    for name, roles in {**ROLES, "anna": ("read", "publish", "consume")}.items():
        words = [word for role in roles for word in ("--role", role)]
        user = ("--user", "anna") if name == "anna" else ()
        made = rumqd("token", "add", name, *words, *user, "--data", str(data))
        assert made.status == 0, made.err
        secrets[name] = made.out.strip()
    flags = ("gateway.port=-1", "gateway.host=127.0.0.1", f"shards.count={shards}", *settings)
    broker = Rumqd(data, *(word for flag in flags for word in ("--set", flag)))
    broker.start()
    return Gateway(broker, secrets)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("gateway"))
    yield made
    made.broker.end()
