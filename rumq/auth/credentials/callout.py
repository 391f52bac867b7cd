"""Authentication by an HTTP server: one request for each new pair of name and password, cached for a while.

    POST {"client_id": ..., "username": ..., "password": ..., "peer": ..., "certificate": ...}
    200  {"allow": true, "user": "alice", "groups": ["operators"], "seconds": 60}   accepted; "allow" alone is enough
    204                                                                             accepted as the user it claims
    200  {"ignore": true}                                                           leave it to the next method
    200  {"allow": false}; 401, 403                                                 refused

Anything else, redirects included, and no answer in time refuse with 0x88: only an explicit answer accepts a client."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, SERVER_UNAVAILABLE, Denied
from rumq.auth.identity import Credentials, Identity, Steps, Work

Call = Callable[[bytes], tuple[int, bytes]]
KNOWS = "the server that knows who may come in"


class CallOut:
    """call: POSTs a body; (status, body of the answer)"""

    name = "http"

    def __init__(self, call: Call, verified: VerificationCache[Identity]) -> None:
        self._call, self._verified = call, verified

    def check(self, credentials: Credentials) -> Steps:
        body = request_body(credentials)
        digest = self._verified.digest(body)
        cached = self._verified.maybe_answer(digest, credentials.now)
        if cached is not None:
            return cached
        answer = yield Work("http", partial(self._ask, body), digest)
        if answer is None:
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} gave no answer, or none that can be read")
        status, reply = answer
        if status in (401, 403):
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"refused by {KNOWS}: {status}", guess=True)
        if status not in (200, 204):
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} answered {status}; expected 200, 204, 401 or 403")
        if reply.get("ignore") is True and "allow" not in reply:
            return None
        if reply.get("allow") is False:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"refused by {KNOWS}", guess=True)
        if problem := problem_of(reply):
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} gave a malformed answer: {problem}")
        identity = Identity(
            reply.get("user", credentials.username),
            frozenset(reply.get("groups", [])),
            self.name,
            credentials.certificate,
        )
        seconds = reply.get("seconds")
        self._verified.put(digest, identity, credentials.now, seconds)
        return identity

    def _ask(self, body: bytes) -> tuple[int, dict[str, Any]] | None:
        """(status, answer); None for no answer, or one that is no JSON object."""
        try:
            status, answer = self._call(body)
            reply = json.loads(answer) if status == 200 else {"allow": True} if status == 204 else {}
        except (OSError, ValueError, RecursionError):
            return None
        return (status, reply) if isinstance(reply, dict) else None


def problem_of(reply: dict[str, object]) -> str:
    """Why an answer does not accept the client; empty if it does."""
    if reply.get("allow") is not True:
        return 'it does not say "allow": true'
    user, groups, seconds = reply.get("user"), reply.get("groups", []), reply.get("seconds", 0)
    if "user" in reply and not (user is None or (isinstance(user, str) and user)):
        return "user is no name"
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        return "groups is no list of names"
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return "seconds is no time"
    return ""


def request_body(credentials: Credentials) -> bytes:
    return json.dumps(
        {
            "client_id": credentials.client_id, "username": credentials.username,
            "password": None if credentials.password is None else credentials.password.decode(errors="replace"),
            "peer": credentials.peer,
            "certificate": credentials.certificate.subject if credentials.certificate else None,
        }
    ).encode()  # fmt: skip
