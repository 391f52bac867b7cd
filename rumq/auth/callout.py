"""Another server says who may come in: one HTTP request for each new pair of name and password, remembered for a while.

    POST {"client_id": ..., "username": ..., "password": ..., "peer": ..., "certificate": ...}
    200  {"allow": true, "user": "alice", "groups": ["operators"], "seconds": 60}   come in; "allow" alone is enough
    204                                                                             come in, as who the client says
    200  {"ignore": true}                                                           ask the next method
    200  {"allow": false}; 401, 403                                                 refused

Anything else, a redirect as well, or no answer in time refuses with 0x88: only a server that says so lets somebody in.
Knows no socket: the request is a call that is given."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, SERVER_UNAVAILABLE, Denied
from rumq.auth.identity import Credentials, Identity, Steps, Work
from rumq.auth.verification_cache import VerificationCache

Call = Callable[[bytes], tuple[int, bytes]]
KNOWS = "the server that knows who may come in"


class CallOut:
    """call: POSTs a body; (status, body of the answer)"""

    name = "http"

    def __init__(self, call: Call, remembered: VerificationCache[Identity]) -> None:
        self._call, self._remembered = call, remembered

    def check(self, shown: Credentials) -> Steps:
        body = question(shown)
        digest = self._remembered.digest(body)
        known = self._remembered.maybe_answer(digest, shown.now)
        if known is not None:
            return known
        answer = yield Work("http", partial(self._asked, body), digest)
        if answer is None:
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} gave no answer, or none that can be read")
        status, said = answer
        if status in (401, 403):
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"refused by {KNOWS}: {status}", guess=True)
        if status not in (200, 204):
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} answered {status}; expected 200, 204, 401 or 403")
        if said.get("ignore") is True and "allow" not in said:
            return None
        if said.get("allow") is False:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"refused by {KNOWS}", guess=True)
        if problem := problem_of(said):
            raise Denied(SERVER_UNAVAILABLE, f"{KNOWS} gave a malformed answer: {problem}")
        who = Identity(
            said.get("user", shown.username), frozenset(said.get("groups", [])), self.name, shown.certificate
        )
        seconds = said.get("seconds")
        self._remembered.put(digest, who, shown.now, seconds)
        return who

    def _asked(self, body: bytes) -> tuple[int, dict[str, Any]] | None:
        """(status, what it says); None for no answer, or one that is no JSON object."""
        try:
            status, answer = self._call(body)
            said = json.loads(answer) if status == 200 else {"allow": True} if status == 204 else {}
        except (OSError, ValueError, RecursionError):
            return None
        return (status, said) if isinstance(said, dict) else None


def problem_of(said: dict[str, Any]) -> str:
    """Why an answer lets nobody in; empty where it does."""
    if said.get("allow") is not True:
        return 'it does not say "allow": true'
    user, groups, seconds = said.get("user"), said.get("groups", []), said.get("seconds", 0)
    if "user" in said and not (user is None or (isinstance(user, str) and user)):
        return "user is no name"
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        return "groups is no list of names"
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return "seconds is no time"
    return ""


def question(shown: Credentials) -> bytes:
    return json.dumps(
        {
            "client_id": shown.client_id, "username": shown.username,
            "password": None if shown.password is None else shown.password.decode(errors="replace"),
            "peer": shown.peer, "certificate": shown.certificate.subject if shown.certificate else None,
        }
    ).encode()  # fmt: skip
