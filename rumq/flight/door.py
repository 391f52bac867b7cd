"""Who asks, and what of the log they may read: the broker's own gate and rules, at every call. docs/security.md.

An `authorization` header comes in, as gRPC brought it; a `Caller` goes out, or `Denied`. Wrong answers are held back
here too: calls are served by threads, so the one that was wrong waits. Knows no gRPC; time and waiting are
arguments."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, SERVER_BUSY, Denied
from rumq.auth.gate import Gate, outcome
from rumq.auth.guessing import Guesses
from rumq.auth.identity import Credentials, Identity, Work
from rumq.auth.permit import Permit
from rumq.auth.rules import Rules

HEADER = "authorization"
SESSION_SECONDS, SESSIONS_MAX = 3600.0, 10_000
HELD_MAX, HELD_TOGETHER_MAX = 16, 128  # refusals that wait at once: of an address, of all
HEADER_BYTES_MAX = 1 << 17
ANYWHERE = ""  # the address of a handshake, of which gRPC does not tell where it comes from


class Caller(NamedTuple):
    """permit: None for one who may read everything"""

    user: str | None
    permit: Permit | None

    def may_read(self, topic: str) -> bool:
        """As a replay over MQTT may: it goes on live there, and here it is asked for again and again."""
        return self.permit is None or self.permit.past.may_receive(topic)

    def reads_any(self, topic_filter: str) -> bool:
        return self.permit is None or self.permit.reach("replay", topic_filter) != "none"


class Door:
    """now: monotonic seconds; now_us: µs since 1970; wait: lets the calling thread alone wait so many seconds"""

    def __init__(
        self, gate: Gate, rules: Rules | None, *, now: Callable[[], float], now_us: Callable[[], int],
        wait: Callable[[float], None], exact: bool = True, guess_seconds_max: float = 8.0, hashes_max: int = 1,
    ) -> None:  # fmt: skip
        """exact: whether who asks is told that the password was wrong; hashes_max: computed at once"""
        self._now, self._now_us, self._wait = now, now_us, wait
        self._lock = threading.Lock()  # methods and rules remember, and were made for one thread
        self._hashing = threading.BoundedSemaphore(hashes_max)
        self._guesses = Guesses(seconds_max=guess_seconds_max)
        self._held: dict[str, int] = {}
        self.become(gate, rules, exact=exact)

    def become(self, gate: Gate, rules: Rules | None, *, exact: bool = True) -> None:
        """Another gate and other rules hold from now on; who had shaken hands does so again."""
        with self._lock:
            self._gate, self._rules, self._exact = gate, rules, exact
            self._sessions: OrderedDict[str, tuple[float, Identity]] = OrderedDict()

    def enter(self, header: str | None, peer: str) -> Caller:
        """peer: address without port. raises: Denied, after as long as `peer` has earned"""
        who = self._identity(header, peer)
        with self._lock:
            rules = self._rules
            permit = rules.permit(who, who.client_id or "") if rules is not None else None
        return Caller(who.user, permit)

    def shake_hands(self, header: str | None) -> str:
        """The header that stands for this one for an hour: a password once, then a token. raises: Denied"""
        who = self._identity(header, ANYWHERE)
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[made] = self._now() + SESSION_SECONDS, who
            while len(self._sessions) > SESSIONS_MAX:
                self._sessions.popitem(last=False)
        return f"Bearer {made}"

    def told(self, denied: Denied) -> str:
        """What a refused one may know of why. `why` itself is for the operator."""
        if denied.reason == SERVER_BUSY:
            return "too many wrong answers wait already, try again later"
        if denied.reason == BAD_USER_NAME_OR_PASSWORD and self._exact:
            return "wrong user name, password or token"
        return "not authorized"

    def _identity(self, header: str | None, peer: str) -> Identity:
        with self._lock:
            if self._held.get(peer, 0) >= HELD_MAX or sum(self._held.values()) >= HELD_TOGETHER_MAX:
                raise Denied(SERVER_BUSY, "too many wrong answers from there wait already")
        try:
            return self._checked(header, peer)
        except Denied as denied:
            if denied.guess:
                self._hold_back(peer)
            raise

    def _checked(self, header: str | None, peer: str) -> Identity:
        kind, value = parsed(header)
        username = password = None
        if kind == "bearer":
            if (known := self._session(value)) is not None:
                return known
            password = value.encode()
        elif kind == "basic":
            username, password = user_and_password(value)
        shown = Credentials("", username, password, peer=peer, now=self._now(), now_us=self._now_us())
        steps = self._gate.enter(shown)
        with self._lock:
            step = outcome(steps)
        while isinstance(step, Work):
            # A hash is meant to be slow, and must not take all cores; a server that is asked takes none.
            with self._hashing if step.kind == "hash" else nullcontext():
                answer = step.run()
            with self._lock:
                step = outcome(steps, answer)
        assert isinstance(step, Identity)
        if step.expires_us is not None and step.expires_us <= self._now_us():
            raise Denied(NOT_AUTHORIZED, "a token that has expired")
        return step

    def _session(self, value: str) -> Identity | None:
        with self._lock:
            until, who = self._sessions.get(value, (0.0, None))
            if who is None:
                return None
            if until > self._now() and (who.expires_us is None or who.expires_us > self._now_us()):
                return who
            del self._sessions[value]
        raise Denied(NOT_AUTHORIZED, "the hands were shaken too long ago: once more")

    def _hold_back(self, peer: str) -> None:
        with self._lock:
            seconds = self._guesses.failed(peer, self._now())
            self._held[peer] = self._held.get(peer, 0) + 1
        try:
            if seconds:
                self._wait(seconds)
        finally:
            with self._lock:
                self._held[peer] -= 1
                if not self._held[peer]:
                    del self._held[peer]


def parsed(header: str | None) -> tuple[str, str]:
    """(kind in lower case, value); kind "" where there is no header. raises: Denied"""
    if header is None:
        return "", ""
    if len(header) > HEADER_BYTES_MAX:
        raise Denied(NOT_AUTHORIZED, f"a header of more than {HEADER_BYTES_MAX} bytes")
    kind, _, value = header.partition(" ")
    if kind.lower() not in ("basic", "bearer") or not value.strip():
        raise Denied(NOT_AUTHORIZED, "a header that is neither Basic nor Bearer")
    return kind.lower(), value.strip()


def user_and_password(value: str) -> tuple[str, bytes]:
    """Of HTTP's Basic, RFC 7617. raises: Denied"""
    try:
        user, colon, password = base64.b64decode(value, validate=True).partition(b":")
        name = user.decode()
    except (binascii.Error, ValueError):
        raise Denied(NOT_AUTHORIZED, "a Basic header that cannot be read") from None
    if not colon:
        raise Denied(NOT_AUTHORIZED, "a Basic header without a password")
    return name, password
