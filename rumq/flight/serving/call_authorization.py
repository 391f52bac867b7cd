"""Authenticates and authorizes each Flight call with the broker's own authenticator and rules. docs/guides/security.md.

It turns an `authorization` header into a `Caller`, or raises `Denied`. Refusals are delayed: the call's thread waits,
and a source may have a bounded number of them (login_turns). Credentials that were recently valid do not
wait. Time and waiting are arguments.

gRPC gives no address for a handshake. While too many refused handshakes wait, a handshake returns its own header,
sealed: the header is checked at its first call, and counts for the address of that call."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from rumq.auth.credentials.authenticator import Authenticator, outcome
from rumq.auth.credentials.seal import Seal
from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, SERVER_BUSY, Denied
from rumq.auth.identity import Credentials, Identity, Steps, Work
from rumq.auth.login_backoff import LoginBackoff
from rumq.auth.permit import Permit
from rumq.auth.rules import RuleSet
from rumq.flight.serving.login_turns import (
    HANDSHAKE_SOURCE,
    WAITING_MAX,
    LoginTurns,
    TooManyWaiting,
    source_of,
)

HEADER = "authorization"
SESSION_SECONDS, SESSIONS_MAX = 3600.0, 10_000
HANDSHAKES_MAX = 16  # that wait for a turn
HEADER_BYTES_MAX = 1 << 17
SEALED = "sealed."  # prefix of a bearer with an unchecked secret


class FlightCaller(NamedTuple):
    """permit: None for a caller who may read everything"""

    user: str | None
    permit: Permit | None

    def may_read(self, topic: str) -> bool:
        """As for a replay over MQTT that continues live, because repeated reads are equivalent."""
        return self.permit is None or self.permit.past.may_receive(topic)

    def may_read_any(self, topic_filter: str) -> bool:
        return self.permit is None or self.permit.reach("replay", topic_filter) != "none"


class CallAuthorization:
    """now: monotonic seconds; now_us: µs since 1970; wait: blocks only the calling thread for so many seconds"""

    def __init__(
        self, authenticator: Authenticator, rules: RuleSet | None, *, now: Callable[[], float],
        now_us: Callable[[], int], wait: Callable[[float], None], exact: bool = True,
        guess_seconds_max: float = 8.0, hashes_max: int = 1,
    ) -> None:  # fmt: skip
        """exact: whether a refusal mentions the wrong password; hashes_max: computed at once"""
        self._now, self._now_us, self._wait = now, now_us, wait
        self._lock = threading.Lock()  # authenticator and rules have caches without locks
        self._turns = LoginTurns(hashes_max)
        self._guesses = LoginBackoff(seconds_max=guess_seconds_max)
        self._seal = Seal()
        self.replace_rules(authenticator, rules, exact=exact)

    def slow_guesses(self, seconds_max: float) -> None:
        """The longest delay of refusals of an address that guesses passwords."""
        self._guesses.seconds_max = seconds_max

    def replace_rules(self, authenticator: Authenticator, rules: RuleSet | None, *, exact: bool = True) -> None:
        """Another authenticator and other rules apply from now on; sessions of earlier handshakes end."""
        with self._lock:
            self._authenticator, self._rules, self._exact = authenticator, rules, exact
            self._sessions: OrderedDict[str, tuple[float, Identity]] = OrderedDict()

    def authorize(self, header: str | None, peer: str) -> FlightCaller:
        """peer: address without port. raises: Denied, after the delay of `peer`"""
        who = self._identity(header, peer, source_of(peer))
        with self._lock:
            rules = self._rules
            permit = rules.permit(who, who.client_id or "") if rules is not None else None
        return FlightCaller(who.user, permit)

    def handshake(self, header: str | None) -> str:
        """A bearer header that is valid for an hour in place of this one. raises: Denied

        It may be sealed and unchecked, see the module: then its first call may be refused.
        """
        try:
            who = self._identity(header, HANDSHAKE_SOURCE, HANDSHAKE_SOURCE)
        except Denied as denied:
            if denied.reason != SERVER_BUSY:
                raise
            return f"Bearer {SEALED}{self._seal.sealed(header or '', int(self._now() + SESSION_SECONDS))}"
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[made] = self._now() + SESSION_SECONDS, who
            if len(self._sessions) > SESSIONS_MAX:
                self._forget_session()
        return f"Bearer {made}"

    def refusal_text(self, denied: Denied) -> str:
        """The reason for the refused client. `denied.why` is for the operator."""
        if denied.reason == SERVER_BUSY:
            return "too many wrong answers wait already, try again later"
        if denied.reason == BAD_USER_NAME_OR_PASSWORD and self._exact:
            return "wrong user name, password or token"
        return "not authorized"

    def _identity(self, header: str | None, peer: str, source: str) -> Identity:
        kind, value = parsed(header)
        if kind == "bearer" and value.startswith(SEALED):
            opened = self._seal.maybe_opened(value.removeprefix(SEALED), self._now())
            if opened is None:
                raise Denied(NOT_AUTHORIZED, "a sealed header that is too old, or was not sealed here: once more")
            kind, value = parsed(opened)
        username = password = None
        if kind == "bearer":
            if (known := self._session(value)) is not None:
                return known
            password = value.encode()
        elif kind == "basic":
            username, password = user_and_password(value)
        shown = Credentials("", username, password, peer=peer, now=self._now(), now_us=self._now_us())
        user = username or ""
        try:
            return self._checked(shown, source, user)
        except TooManyWaiting:
            raise Denied(SERVER_BUSY, "too many wrong answers from there wait already") from None
        except Denied as denied:
            if denied.guess:
                self._delay_refusal(source, user)
            raise

    def _checked(self, shown: Credentials, source: str, user: str) -> Identity:
        """raises: Denied, TooManyWaiting"""
        steps = self._authenticator.authenticate(shown)
        with self._lock:
            step = outcome(steps)
        asked = False
        while isinstance(step, Work):
            self._turns.check(source, user)
            if step.kind != "hash":  # a request to a server uses no core
                step = self._next(steps, step)
                asked = True
                continue
            with self._turns.turn(source, HANDSHAKES_MAX if source == HANDSHAKE_SOURCE else WAITING_MAX):
                self._turns.check(source, user)
                if not asked:
                    # The same credentials may have been checked while this call waited, and are cached.
                    steps = self._authenticator.authenticate(shown)
                    with self._lock:
                        step = outcome(steps)
                if isinstance(step, Work):
                    step = self._next(steps, step)
                    asked = True
        assert isinstance(step, Identity)
        if step.expires_us is not None and step.expires_us <= self._now_us():
            raise Denied(NOT_AUTHORIZED, "a token that has expired")
        return step

    def _next(self, steps: Steps, step: Work) -> object:
        answer = step.run()
        with self._lock:
            return outcome(steps, answer)

    def _session(self, value: str) -> Identity | None:
        with self._lock:
            until, who = self._sessions.get(value, (0.0, None))
            if who is None:
                return None
            if until > self._now() and (who.expires_us is None or who.expires_us > self._now_us()):
                return who
            del self._sessions[value]
        raise Denied(NOT_AUTHORIZED, "the hands were shaken too long ago: once more")

    def _forget_session(self) -> None:
        """Drop the oldest session of the user with the most: no user can push out another's."""
        user, _ = Counter(who.user for _, who in self._sessions.values()).most_common(1)[0]
        del self._sessions[next(key for key, (_, who) in self._sessions.items() if who.user == user)]

    def _delay_refusal(self, source: str, user: str) -> None:
        with self._turns.delayed_refusal(source, user) as held:
            if not held:
                return
            with self._lock:
                seconds = self._guesses.failed(source, self._now())
            if seconds:
                self._wait(seconds)


def parsed(header: str | None) -> tuple[str, str]:
    """(kind in lower case, value); kind "" without a header. raises: Denied"""
    if header is None:
        return "", ""
    if len(header) > HEADER_BYTES_MAX:
        raise Denied(NOT_AUTHORIZED, f"a header of more than {HEADER_BYTES_MAX} bytes")
    kind, _, value = header.partition(" ")
    if kind.lower() not in ("basic", "bearer") or not value.strip():
        raise Denied(NOT_AUTHORIZED, "a header that is neither Basic nor Bearer")
    return kind.lower(), value.strip()


def user_and_password(value: str) -> tuple[str, bytes]:
    """Credentials of HTTP Basic, RFC 7617. raises: Denied"""
    try:
        user, colon, password = base64.b64decode(value, validate=True).partition(b":")
        name = user.decode()
    except (binascii.Error, ValueError):
        raise Denied(NOT_AUTHORIZED, "an invalid Basic header") from None
    if not colon:
        raise Denied(NOT_AUTHORIZED, "a Basic header without a password")
    return name, password
