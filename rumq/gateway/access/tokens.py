"""Tokens of the REST interface: random secrets with a name, roles and a user. A file keeps their hashes only.

A secret has 256 bits of chance, so that one round of SHA-256 hides it as well as a slow hash would."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Annotated, NamedTuple, get_args

import msgspec

from rumq.admin.operations import Role
from rumq.auth.errors import SecretsError

PREFIX = "rumq_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ROLES: tuple[Role, ...] = get_args(Role)
Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Token(NamedTuple):
    """roles: what it may do; user: as whom it publishes and reads records, "" as nobody in particular

    sha256: of its secret; expires_us: from then on it is not known, µs since 1970; 0: never"""

    name: str
    roles: frozenset[Role]
    user: str = ""
    sha256: str = ""
    expires_us: int = 0

    def is_expired(self, now_us: int) -> bool:
        return 0 < self.expires_us <= now_us

    def may(self, role: Role) -> bool:
        return role in self.roles


class TokenLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of the file, as JSON."""

    name: str
    roles: list[Role]
    sha256: Hash
    user: str = ""
    expires_us: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET  # unknown to older versions


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def parse(text: str, path: str) -> dict[str, Token]:
    """Hash of the secret -> token. raises: SecretsError with the line"""
    found: dict[str, Token] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            read = msgspec.json.decode(line, type=TokenLine)
        except msgspec.DecodeError as fault:
            raise SecretsError(path, number, f"is no token ({fault}); rumqd token writes such lines") from None
        if NAME.fullmatch(read.name) is None or any(each.name == read.name for each in found.values()):
            raise SecretsError(path, number, f"the name {read.name!r} is invalid, or there twice")
        expires_us = 0 if read.expires_us is msgspec.UNSET else read.expires_us
        found[read.sha256] = Token(read.name, frozenset(read.roles), read.user, read.sha256, expires_us)
    return found


def formatted(tokens: Mapping[str, Token]) -> str:
    """The text of a file with these tokens, by hash."""
    lines = ["# tokens of the gateway: rumqd token"]
    for sha256, token in tokens.items():
        line = TokenLine(token.name, sorted(token.roles), sha256, token.user, token.expires_us or msgspec.UNSET)
        lines.append(msgspec.json.encode(line).decode())
    return "\n".join(lines) + "\n"
