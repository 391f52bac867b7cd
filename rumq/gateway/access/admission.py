"""Who may do what: the token of a request, its roles, and the delay of refusals by network. Time is an argument.

A refused request waits before its answer, twice as long each time; a right token never waits. A network is an IPv4
address or an IPv6 /64: whoever has one address of a /64 has them all."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rumq.admin.operations import Role
from rumq.auth.login_backoff import LoginBackoff
from rumq.auth.quota_holder import holder_of
from rumq.gateway.access.tokens import Token

SECRET_BYTES_MAX = 1024
WAITING_MAX = 256  # refusals that wait; further ones are answered at once, with 429
OF_A_NETWORK_MAX = 64  # of them


class Unauthorized(Exception):
    """401: no token, or a wrong one. seconds: to wait before the answer; why: for the client"""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.seconds = why, seconds


class Forbidden(Exception):
    """403: the token lacks a role."""


class RequestAdmission:
    """tokens: by hash, replaced by a reload; refused: requests so far"""

    def __init__(
        self,
        tokens: Mapping[str, Token],
        seconds_max: float,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """now_us: µs since 1970, for tokens that expire"""
        self.tokens = tokens
        self._now_us = now_us
        self._backoff = LoginBackoff(seconds_max=seconds_max)
        self.waiting: Counter[str] = Counter()  # refusals that are delayed, by network
        self.refused = 0

    @property
    def guess_seconds_max(self) -> float:
        """Of the delay of refusals of an address that guesses tokens."""
        return self._backoff.seconds_max

    @guess_seconds_max.setter
    def guess_seconds_max(self, seconds_max: float) -> None:
        self._backoff.seconds_max = seconds_max

    def token_of(self, header: str | None, address: str, now: float) -> Token:
        """raises: Unauthorized"""
        kind, _, secret = (header or "").partition(" ")
        if kind.lower() != "bearer" or not secret.strip():
            raise Unauthorized("give a token: Authorization: Bearer rumq_...; rumqd token add makes one")
        if len(secret) <= SECRET_BYTES_MAX:
            token = self.tokens.get(hashlib.sha256(secret.strip().encode()).hexdigest())
            if token is not None:
                self._check_expiry(token)
                return token
        self.refused += 1
        raise Unauthorized("the token is not known", self._backoff.failed(holder_of(address), now))

    def check(self, token: Token) -> None:
        """For requests that last: whether the token is still what it was. raises: Unauthorized"""
        if self.tokens.get(token.sha256) != token:
            raise Unauthorized("the token was removed or changed")
        self._check_expiry(token)

    def _check_expiry(self, token: Token) -> None:
        """raises: Unauthorized at once: who has the secret guesses nothing"""
        if token.is_expired(self._now_us()):
            raise Unauthorized(f"token {token.name} has expired: rumqd token add makes another one")

    @contextmanager
    def delayed(self, address: str) -> Iterator[None]:
        """While one more refusal of this address waits."""
        network = holder_of(address)
        self.waiting[network] += 1
        try:
            yield
        finally:
            self.waiting[network] -= 1
            if not self.waiting[network]:
                del self.waiting[network]

    def has_room(self, address: str) -> bool:
        """Whether one more refusal of this address may wait."""
        waiting = self.waiting
        return waiting[holder_of(address)] < OF_A_NETWORK_MAX and waiting.total() < WAITING_MAX


def check_role(token: Token, role: Role) -> None:
    """raises: Forbidden"""
    if not token.may(role):
        has = ", ".join(sorted(token.roles)) or "none"
        raise Forbidden(f"token {token.name} may not {role}: its roles are {has}")
