"""Logins of Kafka's clients: SASL PLAIN and SCRAM-SHA-256, a client certificate, or none where that is allowed.

Users, rules, delays of who guesses and turns of hashes are those of Flight's calls. SCRAM-SHA-512 is not offered: a
password file has the keys of one hash. Everything here blocks, and belongs into threads. RFC 4616, RFC 5802"""

from __future__ import annotations

import base64
from typing import NamedTuple

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.hashes import SCRAM
from rumq.auth.errors import NOT_AUTHORIZED, SERVER_BUSY, Denied
from rumq.auth.identity import Certificate, Challenge, Credentials, Identity, Steps, Work
from rumq.flight.serving.call_authorization import CallAuthorization, FlightCaller
from rumq.flight.serving.login_turns import TooManyWaiting, source_of

PLAIN = "PLAIN"
PARTS_OF_PLAIN = 3  # for whom, who, password


class BegunScram(NamedTuple):
    """One that waits for the client's last message. challenge: the message for the client"""

    steps: Steps
    challenge: bytes


class KafkaLogins(CallAuthorization):
    @property
    def mechanisms(self) -> list[str]:
        """That are offered."""
        return [PLAIN, SCRAM] if SCRAM in self._authenticator.enhanced else [PLAIN]

    def without_login(self, peer: str, certificate: Certificate | None) -> FlightCaller:
        """Who has a certificate, or nothing. raises: Denied"""
        return self.authorize(None, peer, certificate)

    def plain(self, data: bytes, peer: str, certificate: Certificate | None) -> FlightCaller:
        """raises: Denied, after a delay for who guesses"""
        parts = data.split(b"\0")
        if len(parts) != PARTS_OF_PLAIN or (parts[0] and parts[0] != parts[1]) or b":" in parts[1]:
            raise Denied(NOT_AUTHORIZED, "PLAIN: expected a user name without colon, and a password")
        shown = base64.b64encode(parts[1] + b":" + parts[2]).decode()
        return self.authorize(f"Basic {shown}", peer, certificate)

    def scram_first(self, data: bytes, peer: str, certificate: Certificate | None) -> BegunScram:
        """raises: Denied"""
        shown = Credentials("", None, None, certificate, peer=peer, now=self._now(), now_us=self._now_us(),
                            method=SCRAM, data=data)  # fmt: skip
        steps = self._authenticator.authenticate(shown)
        try:
            self._turns.check(source_of(peer), "")
        except TooManyWaiting:
            raise Denied(SERVER_BUSY, "too many wrong answers from there wait already") from None
        with self._lock:
            step = outcome(steps)
        if not isinstance(step, Challenge):
            raise Denied(NOT_AUTHORIZED, "SCRAM: no challenge")
        return BegunScram(steps, step.data)

    def scram_last(self, login: BegunScram, data: bytes, peer: str) -> tuple[FlightCaller, bytes]:
        """Who it is, and the server's proof. raises: Denied, after a delay for who guesses"""
        source = source_of(peer)
        try:
            who = self._proved(login, data, source)
        except TooManyWaiting:
            raise Denied(SERVER_BUSY, "too many logins from there wait already") from None
        except Denied as denied:
            if denied.guess:
                self._delay_refusal(source, "")
            raise
        with self._lock:
            permit = self._rules.permit(who, "") if self._rules is not None else None
        return FlightCaller(who.user, permit, who.expires_us), who.last_data

    def _proved(self, login: BegunScram, data: bytes, source: str) -> Identity:
        """raises: Denied, TooManyWaiting"""
        with self._lock:
            step = outcome(login.steps, data)
        while isinstance(step, Work):
            with self._turns.turn(source):
                step = self._next(login.steps, step)
        if not isinstance(step, Identity):
            raise Denied(NOT_AUTHORIZED, "SCRAM: one message too many")
        return step
