"""Tokens and users over REST: the requests and answers of their endpoints. Secrets are in answers that make one, and
nowhere else."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rumq.admin import requests as q
from rumq.admin.answers import Answer
from rumq.admin.operations import Role
from rumq.admin.units import field, number, text


class TokenRow(msgspec.Struct, kw_only=True):
    name: str
    roles: list[Role]
    user: Annotated[str, field("as whom it publishes and reads records; empty: nobody in particular")]
    expires_us: Annotated[int | None, field("null: never", "µs since 1970")]
    expired: Annotated[bool, field("it is not known any more; `revoke_token` removes it from the file")]


class Tokens(Answer, kw_only=True):
    """Secrets are nowhere kept: the file has hashes."""

    tokens: list[TokenRow]


class NewToken(q.Request, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, text("letters, digits, . _ and -", 64, 1)]
    roles: Annotated[list[Role], field("those of the token of the request, or some of them")] = msgspec.field(
        default_factory=lambda: ["read"]
    )
    user: Annotated[str, text("as whom it publishes and reads records; empty: nobody in particular", 1024)] = ""
    seconds: Annotated[int, number("until it expires; null: never", "seconds", 1, 10 * 366 * 86_400)] | None = None


class MadeToken(Answer, kw_only=True):
    token: TokenRow
    secret: Annotated[str, field("shown this once; the file keeps its hash")]


class OneToken(q.Request, kw_only=True):
    name: Annotated[str, text("of the token", 64, 1)]


class NewUser(q.Request, kw_only=True, forbid_unknown_fields=True):
    user: Annotated[str, text("name of the user; of one that there is, the password is changed", 1024, 1)]
    password: Annotated[str | None, field("null: a random one is made, and shown this once")] = None


class MadeUser(Answer, kw_only=True):
    user: str
    password: Annotated[str | None, field("that was made; null: it was given")]


class OneUser(q.Request, kw_only=True):
    user: Annotated[str, text("name of the user", 1024, 1)]


class Revoked(Answer, kw_only=True):
    revoked: Annotated[str, field("name of the token or user that is there no more")]


class Users(Answer, kw_only=True):
    """Of the password file; tokens and certificates name others."""

    users: list[str]
