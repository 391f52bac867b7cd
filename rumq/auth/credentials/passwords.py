"""Password files: `user:hash` a line, as mosquitto_passwd and `rumqd passwd` write them. Checking one is `Work`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial

from rumq.auth.credentials import hashes
from rumq.auth.credentials.decoy_hashes import DecoyHashes
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, Denied, SecretsError
from rumq.auth.identity import Credentials, Identity, Steps, Work

USER_BYTES_MAX = 1024
PASSWORD_BYTES_MAX = 65_535  # of MQTT


def parse(text: str, path: str) -> dict[str, str]:
    """User -> hash. A line that is empty or begins with `#` is left out.

    raises: SecretsError with the line, and nothing of the text after the user name
    """
    users: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, hashed = line.partition(":")
        if not colon:
            raise SecretsError(path, number, "expected user:hash; rumqd passwd writes such lines")
        if problem := user_problem(user):
            raise SecretsError(path, number, problem)
        if user in users:
            raise SecretsError(path, number, f"the user {user!r} is there twice")
        hashed = hashed.strip()
        if problem := hashes.problem_of(hashed):
            way_out = f"; if it is a plain password: rumqd passwd -U {path}" if "$" not in hashed else ""
            raise SecretsError(path, number, f"user {user!r}: {problem}{way_out}")
        users[user] = hashed
    return users


def user_problem(user: str) -> str:
    """Why this is no valid user name in the file; empty if it is."""
    if not user or user.strip() != user:
        return "a user has a name, without spaces round it"
    if ":" in user or not user.isprintable():
        return "the name of a user has no colon and nothing that cannot be printed"
    if len(user.encode()) > USER_BYTES_MAX:
        return f"the name of a user has at most {USER_BYTES_MAX} bytes"
    return ""


def written(users: Mapping[str, str]) -> str:
    return "".join(f"{user}:{hashed}\n" for user, hashed in users.items())


class Passwords:
    """User and password against the file; an unknown user is left to the next method."""

    name = "password"

    def __init__(
        self, users: Mapping[str, str], verified: VerificationCache[bool], secret: bytes | None = None
    ) -> None:
        """secret: selects the decoy hashes of unknown users; random if None"""
        self.users = users
        self._verified = verified
        self._decoys = DecoyHashes(
            users.values() or [hashes.argon2id(secrets.token_bytes(16), secrets.token_bytes(16))],
            hashes.cost_of,
            secret or secrets.token_bytes(32),
        )

    def check(self, credentials: Credentials) -> Steps:
        user, password = credentials.username, credentials.password
        if user is None or password is None:
            return None
        # An empty password is always refused, even if the file has the hash of one; mosquitto does the same.
        hashed = self.users.get(user) if password else None
        digest = self._verified.digest(user.encode(), (hashed or "").encode(), password)
        if hashed is None or not self._verified.maybe_answer(digest, credentials.now):
            checked = hashed or self.users.get(user) or self._decoys.hash_for(user)
            verify: Callable[[], bool] = partial(hashes.verify, checked, password)
            right = yield Work("hash", verify, digest)
            if hashed is None and user not in self.users:
                return None
            if hashed is None or not right:
                raise Denied(BAD_USER_NAME_OR_PASSWORD, f"wrong password for user {user!r}", guess=True)
            self._verified.put(digest, True, credentials.now)
        return Identity(user, method=self.name, certificate=credentials.certificate)
