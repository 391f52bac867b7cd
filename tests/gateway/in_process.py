"""The gateway's application without a broker and without sockets: requests of httpx, fakes behind it, time by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import trio

from rumq.admin import answers as a
from rumq.auth.rules import parse as parse_rules
from rumq.gateway.access.admission import RequestAdmission
from rumq.gateway.access.credential_files import CredentialFiles
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token, formatted, hash_of
from rumq.gateway.app import App
from rumq.gateway.handlers.context import (
    BrokerAccess,
    Context,
    GatewayClock,
    GatewayFigures,
    GatewayRights,
    LogAccess,
)
from rumq.gateway.records.log_watch import LogWatch
from rumq.settings.table.gateway import Gateway

NOW_US = 1_800_000_000_000_000


class InProcess:
    """secrets: by name of the token; events: reported; orders: names of operations that the shards were asked;
    rechecked: names of the tokens that connections may go on with, at each change"""

    def __init__(
        self, path: Path, tokens: Mapping[str, tuple[tuple[str, ...], str]], rules: str = "", users: str = "",
        *, has_users: bool = True,
    ) -> None:  # fmt: skip
        self.now_us = NOW_US
        self.secrets = {name: f"rumq_{name}" for name in tokens}
        self.events: list[dict[str, Any]] = []
        self.orders: list[str] = []
        self.rechecked: list[set[str]] = []
        self.tokens_file, self.users_file = path / "gateway-tokens", path / "users"
        known = {}
        for name, (roles, user) in tokens.items():
            sha256 = hash_of(self.secrets[name])
            known[sha256] = Token(name, frozenset(roles), user, sha256)  # type: ignore[arg-type]
        self.tokens_file.write_text(formatted(known))
        self.tokens_file.chmod(0o600)
        self.users_file.write_text(users)
        self.users_file.chmod(0o600)
        settings = Gateway()
        password_file = str(self.users_file) if has_users else ""
        anything: Any = None
        clock = GatewayClock(trio.current_time, lambda: self.now_us)
        relays, followed = self._relays(), LogWatch(dict, 4)
        rights = GatewayRights(
            RequestAdmission(known, 0.0, lambda: self.now_us), HostNames(settings, is_loopback=True),
            parse_rules(rules, "rules") if rules else None, [],
            CredentialFiles(str(self.tokens_file), password_file, lambda token: None), clock,
            (relays.recheck, lambda _: followed.wake()),
        )  # fmt: skip
        self.context = Context(
            settings, rights, BrokerAccess(self._shards(), anything, relays, anything), LogAccess(anything, followed),
            GatewayFigures(anything, anything), clock, self._event,
        )  # fmt: skip
        self.context.rights.users = self.context.rights.read_users()
        self.app = App(self.context).build()

    def _shards(self) -> Any:
        async def ask(operation: Any, asked: Any, reader: Any = None) -> Any:
            self.orders.append(operation.name)
            return a.Done(done=1)

        return SimpleNamespace(ask=ask)

    def _relays(self) -> Any:
        return SimpleNamespace(
            recheck=lambda tokens: self.rechecked.append({each.name for each in tokens.values()}), count=0
        )

    def _event(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    def ask(self, method: str, path: str, body: Any = None, *, token: str = "ops") -> httpx.Response:
        """token: a name, or a secret"""

        async def run() -> httpx.Response:
            headers = {"authorization": f"Bearer {self.secrets.get(token, token)}"}
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, f"/api/v1/{path}", json=body, headers=headers)

        return trio.run(run)
