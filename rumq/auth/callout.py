"""Another server says who may come in: one HTTP request for each new pair of name and password, remembered for a while.

    POST {"client_id": ..., "username": ..., "password": ..., "peer": ..., "certificate": ...}
    200  {"user": "alice", "groups": ["operators"], "seconds": 60}     come in; every key may be missing
    200  {"ignore": true}                                              ask the next method
    401, 403                                                           refused

Anything else, or no answer in time, refuses with 0x88: who is not known does not come in. Knows no socket: the request
is a call that is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, SERVER_UNAVAILABLE, Denied
from rumq.auth.identity import Credentials, Identity, Steps, Work
from rumq.auth.remembered import Remembered

Call = Callable[[bytes], tuple[int, bytes]]


class CallOut:
    """call: POSTs a body; (status, body of the answer)"""

    name = "http"

    def __init__(self, call: Call, remembered: Remembered[Identity]) -> None:
        self._call, self._remembered = call, remembered

    def check(self, shown: Credentials) -> Steps:
        body = question(shown)
        digest = self._remembered.digest(body)
        known = self._remembered.maybe_answer(digest, shown.now)
        if known is not None:
            return known
        answer = yield Work("http", partial(self._asked, body))
        if answer is None:
            raise Denied(SERVER_UNAVAILABLE, "the server that knows who may come in gave no answer")
        status, said = answer
        if status in (401, 403):
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"refused by the server that knows: {status}", guess=True)
        if status not in (200, 204):
            raise Denied(SERVER_UNAVAILABLE, f"the server that knows who may come in answered {status}")
        if said.get("ignore"):
            return None
        groups = said.get("groups", [])
        user = said.get("user", shown.username)
        if not (isinstance(groups, list) and (user is None or isinstance(user, str))):
            raise Denied(SERVER_UNAVAILABLE, "the server that knows who may come in gave a malformed answer")
        who = Identity(user, frozenset(map(str, groups)), self.name, shown.certificate)
        seconds = said.get("seconds")
        self._remembered.put(
            digest, who, shown.now, float(seconds) if isinstance(seconds, int | float) else None
        )
        return who

    def _asked(self, body: bytes) -> tuple[int, dict[str, Any]] | None:
        try:
            status, answer = self._call(body)
            said = json.loads(answer) if answer.strip() and status == 200 else {}
        except (OSError, ValueError):
            return None
        return status, said if isinstance(said, dict) else {}


def question(shown: Credentials) -> bytes:
    return json.dumps(
        {
            "client_id": shown.client_id, "username": shown.username,
            "password": None if shown.password is None else shown.password.decode(errors="replace"),
            "peer": shown.peer, "certificate": shown.certificate.subject if shown.certificate else None,
        }
    ).encode()  # fmt: skip
