"""What can be asked: the operations of the admin interface, and what only the gateway answers."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rumq.admin import requests as q
from rumq.admin.answers import Streams
from rumq.admin.operations import OPERATIONS, TABLE

# Not of the admin interface: their types are in `rumq.gateway.contract.endpoints`, which takes long to import.
OF_THE_GATEWAY = {
    "records": "records by topic and offset, or by time",
    "value": "the newest record of a topic",
    "history": "figures of the last hours and days, to plot",
    "settings": "the settings in force, each with its source",
    "users": "names of the password file",
    "tokens": "tokens of the gateway, without secrets",
    "revoke_token": "remove a token of the gateway; what it holds open ends",
    "revoke_user": "remove a user from the password file",
    "rules": "whether the rules allow something, and why",
    "me": "what the token of the request may do",
}
ACTIONS_OF_THE_GATEWAY = {
    "clear": "delete retained messages by topic filter, as the token's user",
}
DESTROYED = {"clear": "the retained messages of these topics; their records stay"}
REVOKED = "whoever uses it is refused from then on"
STREAMS, STREAMS_LINE = "streams", "streams, their partitions added up"


Method = Literal["get", "post", "delete"]


class Question(NamedTuple):
    """path: of REST, below /api/v1; method: with "post" the request is an object in the body, else parameters

    destroys: what is lost by it; empty: nothing. is_remote: only the gateway answers it"""

    name: str
    request: type[q.Request]
    answer: type
    path: str
    method: Method = "get"
    destroys: str = ""
    is_remote: bool = False

    @property
    def is_action(self) -> bool:
        """It changes something."""
        return self.method != "get"


def lines() -> dict[str, str]:
    """What can be asked, by name, each with a line of help."""
    found = {each.name: each.summary for each in TABLE}
    found[STREAMS] = STREAMS_LINE
    remote = OF_THE_GATEWAY | ACTIONS_OF_THE_GATEWAY
    return found | {name: f"{line} (over REST)" for name, line in remote.items()}


def question_of(name: str) -> Question:
    """name: one of `lines`"""
    if (operation := OPERATIONS.get(name)) is not None:
        path = f"actions/{name}" if operation.is_action else name
        method: Method = "post" if operation.is_action else "get"
        return Question(name, operation.request, operation.answer, path, method, operation.destroys)
    if name == STREAMS:
        return Question(name, q.Nothing, Streams, name)
    from rumq.gateway.contract.endpoints import ENDPOINTS

    endpoint = next(each for each in ENDPOINTS if each.name == name)
    if name in ACTIONS_OF_THE_GATEWAY:
        path = f"actions/{name}"
        return Question(name, endpoint.request, endpoint.answer, path, "post", DESTROYED[name], is_remote=True)
    means: Method = "delete" if endpoint.method == "delete" else "get"
    return Question(
        name, endpoint.request, endpoint.answer, endpoint.path.removeprefix("/api/v1/"), means,
        REVOKED if means == "delete" else "", is_remote=True,
    )  # fmt: skip
