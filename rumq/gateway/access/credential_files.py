"""The files of tokens and of users, changed over REST: read, changed and replaced while nobody else changes them.

They are the one store: `rumqd token` and `rumqd passwd` change the same ones. Called on threads."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rumq.auth.credentials import files, hashes, passwords
from rumq.errors import RumqError
from rumq.gateway.access import tokens as t
from rumq.gateway.access.tokens import Token

PASSWORD_BYTES = 24  # of a random one


class AlreadyThere(RumqError):
    """Another one has the name."""


class NoSuchCredential(RumqError):
    """There is none of the name."""


class NoStore(RumqError):
    """The settings name no file to keep it in."""


@dataclass(frozen=True)
class CredentialFiles:
    """tokens_path, password_path: the latter "" where the settings have none; check: raises RumqError for a token that
    the settings do not allow"""

    tokens_path: str
    password_path: str
    check: Callable[[Token], None]

    def add_token(self, token: Token) -> Mapping[str, Token]:
        """All tokens then, by hash. raises: AlreadyThere, SecretsError, OSError, RumqError"""
        self.check(token)
        with files.locked(self.tokens_path):
            known = self._tokens()
            if any(each.name == token.name for each in known.values()):
                raise AlreadyThere(f"there is a token {token.name!r} already: revoke it first, or take another name")
            known[token.sha256] = token
            files.replace(self.tokens_path, t.formatted(known))
        return known

    def remove_token(self, name: str) -> Mapping[str, Token]:
        """The others, by hash. raises: NoSuchCredential, SecretsError, OSError"""
        with files.locked(self.tokens_path):
            known = self._tokens()
            kept = {sha256: token for sha256, token in known.items() if token.name != name}
            if len(kept) == len(known):
                raise NoSuchCredential(f"there is no token {name!r}; `tokens` lists them")
            files.replace(self.tokens_path, t.formatted(kept))
        return kept

    def _tokens(self) -> dict[str, Token]:
        path = self.tokens_path
        return t.parse(files.read_secrets(path, strict=False), path) if os.path.exists(path) else {}

    def put_user(self, user: str, password: str | None) -> str:
        """Add a user, or change the password of one; without a password a random one is made.

        returns: a password that was made; else "". raises: ValueError, NoStore, SecretsError, OSError
        cost: a hash that takes tens of ms by design"""
        if problem := passwords.user_problem(user):
            raise ValueError(problem)
        made = "" if password is not None else secrets.token_urlsafe(PASSWORD_BYTES)
        given = (made or password or "").encode()
        if not 1 <= len(given) <= passwords.PASSWORD_BYTES_MAX:
            raise ValueError(f"a password has 1 to {passwords.PASSWORD_BYTES_MAX} bytes")
        hashed = hashes.argon2id(given, secrets.token_bytes(hashes.SALT_BYTES))
        with files.locked(self._password_path):
            known = self._users()
            known[user] = hashed
            files.replace(self._password_path, passwords.written(known))
        return made

    def remove_user(self, user: str) -> None:
        """raises: NoSuchCredential, NoStore, SecretsError, OSError"""
        with files.locked(self._password_path):
            known = self._users()
            if known.pop(user, None) is None:
                raise NoSuchCredential(f"there is no user {user!r} in the password file; `users` lists them")
            files.replace(self._password_path, passwords.written(known))

    @property
    def _password_path(self) -> str:
        if not self.password_path:
            raise NoStore("there is no password file: auth.password_file names one (rumqd passwd -c makes it)")
        return self.password_path

    def _users(self) -> dict[str, str]:
        path = self._password_path
        return passwords.parse(files.read_secrets(path, strict=False), path)
