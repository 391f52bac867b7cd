"""The answers about tokens and users: listed without secrets, made with one that is shown once, revoked at once.

A token gives no more than it has: the rules would hold for nobody who may administer otherwise.
docs/reference/gateway.md, "Tokens and users over REST"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio
from starlette.requests import Request
from starlette.responses import Response

from rumq.admin import requests as q
from rumq.admin.operations import OPERATIONS, NotFound
from rumq.auth.errors import SecretsError
from rumq.auth.identity import Identity
from rumq.auth.permit import ACTIONS
from rumq.errors import RumqError
from rumq.gateway.access.admission import Forbidden
from rumq.gateway.access.credential_files import AlreadyThere, NoStore, NoSuchCredential
from rumq.gateway.access.tokens import NAME, Token, hash_of, new_secret
from rumq.gateway.broker.shard_client import ShardQueries
from rumq.gateway.contract import credential_messages as m
from rumq.gateway.contract.problems import Conflict, Unavailable
from rumq.gateway.handlers.context import GatewayRights
from rumq.gateway.http.requests import as_json, fields_of, parameters_of
from rumq.settings.table.gateway import Gateway

T = TypeVar("T")
SECOND_US = 1_000_000
CREATED = 201


class CredentialEndpoints:
    def __init__(
        self, rights: GatewayRights, shards: ShardQueries, settings: Gateway, event: Callable[..., None]
    ) -> None:
        self._rights, self._shards, self._settings, self._event = rights, shards, settings, event

    async def tokens(self, request: Request, token: Token) -> Response:
        known = sorted(self._rights.admission.tokens.values(), key=lambda each: each.name)
        return as_json(m.Tokens(tokens=[self._row(each) for each in known]))

    async def make_token(self, request: Request, token: Token) -> Response:
        asked = await fields_of(request, m.NewToken, self._settings.body_bytes_max)
        if NAME.fullmatch(asked.name) is None:
            raise ValueError("a name has letters, digits, . _ and -, at most 64, and begins with a letter or digit")
        if more := sorted(set(asked.roles) - token.roles):
            raise Forbidden(f"token {token.name} gives no role that it lacks: {', '.join(more)}")
        if asked.user != token.user:
            self._check_reach(token, f"a token with {f'user {asked.user}' if asked.user else 'no user'}")
        secret = new_secret()
        expires_us = 0
        if asked.seconds is not None:
            expires_us = self._rights.clock.now_us() + asked.seconds * SECOND_US
        made = Token(asked.name, frozenset(asked.roles), asked.user, hash_of(secret), expires_us)
        tokens = await self._changed(lambda: self._rights.credentials.add_token(made))
        self._rights.replace_tokens(tokens)
        self._audit(
            "make_token",
            token,
            name=made.name,
            roles=sorted(made.roles),
            user=made.user,
            expires_us=expires_us,
        )
        return as_json(m.MadeToken(token=self._row(made), secret=secret), CREATED)

    async def revoke_token(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneToken)
        tokens = await self._changed(lambda: self._rights.credentials.remove_token(asked.name))
        self._rights.replace_tokens(tokens)
        self._audit("revoke_token", token, name=asked.name)
        return as_json(m.Revoked(revoked=asked.name))

    async def users(self, request: Request, token: Token) -> Response:
        return as_json(m.Users(users=list(self._rights.users)))

    async def make_user(self, request: Request, token: Token) -> Response:
        asked = await fields_of(request, m.NewUser, self._settings.body_bytes_max)
        self._check_reach(token, "a user of the password file")
        password = await self._changed(lambda: self._rights.credentials.put_user(asked.user, asked.password))
        is_new = asked.user not in self._rights.users
        await self._read_again()
        self._audit("make_user", token, user=asked.user, is_new=is_new)
        return as_json(m.MadeUser(user=asked.user, password=password or None), CREATED if is_new else 200)

    async def revoke_user(self, request: Request, token: Token) -> Response:
        asked = parameters_of(request, m.OneUser)
        await self._changed(lambda: self._rights.credentials.remove_user(asked.user))
        await self._read_again()
        self._audit("revoke_user", token, user=asked.user)
        return as_json(m.Revoked(revoked=asked.user))

    def _row(self, token: Token) -> m.TokenRow:
        return m.TokenRow(
            name=token.name, roles=sorted(token.roles), user=token.user, expires_us=token.expires_us or None,
            expired=token.is_expired(self._rights.clock.now_us()),
        )  # fmt: skip

    def _check_reach(self, token: Token, what: str) -> None:
        """raises: Forbidden for a token whose user may not do everything: with another user it could"""
        rules = self._rights.rules
        permit = None if rules is None else rules.permit(Identity(token.user or None), "")
        if permit is not None and any(permit.reach(action, "#") != "all" for action in ACTIONS):
            who = f"user {token.user}" if token.user else f"token {token.name}, which has no user,"
            raise Forbidden(
                f"not permitted: the rules do not let {who} do everything, and {what} could do what they forbid it: "
                "use rumqd token and rumqd passwd on the broker's machine, or a token whose user may do everything"
            )

    async def _changed(self, change: Callable[[], T]) -> T:
        """What a change of a file returns. raises: NotFound, Conflict, ValueError, Unavailable"""
        try:
            return await trio.to_thread.run_sync(change)
        except NoSuchCredential as fault:
            raise NotFound(str(fault)) from None
        except (AlreadyThere, NoStore) as fault:
            raise Conflict(str(fault)) from None
        except SecretsError as fault:
            raise Unavailable(str(fault)) from None
        except RumqError as fault:
            raise ValueError(str(fault)) from None
        except OSError as fault:
            why = fault.strerror or str(fault)
            raise Unavailable(f"{fault.filename or 'the file'} cannot be written: {why}") from None

    async def _read_again(self) -> None:
        """Have the broker read the password file, as SIGHUP does. raises: Unavailable"""
        self._rights.users = await self._changed(self._rights.read_users)
        try:
            await self._shards.ask(OPERATIONS["reload"], q.Nothing())
        except (RumqError, ValueError) as fault:
            raise Unavailable(f"the file was changed, but the broker does not read it: {fault}") from None

    def _audit(self, action: str, token: Token, **what: object) -> None:
        self._event("admin.action", action=action, token=token.name, what=what, why="", result=None)
