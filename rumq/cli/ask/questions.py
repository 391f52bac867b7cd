"""What can be asked: the operations of the admin interface, and what only the gateway answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args
from urllib.parse import quote

from rumq.admin import requests as q
from rumq.admin.answers import Streams
from rumq.admin.kafka_groups import KAFKA_OPERATIONS
from rumq.admin.operations import OPERATIONS, TABLE

if TYPE_CHECKING:
    from msgspec.structs import FieldInfo

    from rumq.gateway.contract.endpoint import Endpoint

# Not of the admin interface: their types are in `rumq.gateway.contract.endpoints`, which takes long to import.
OF_THE_GATEWAY = {
    "records": "records by topic and offset, or by time",
    "topic_records": "the log of one topic, from a number, a time or a cursor on",
    "value": "the newest record of a topic",
    "history": "figures of the last hours and days, to plot",
    "settings": "the settings in force, each with its source",
    "users": "names of the password file",
    "tokens": "tokens of the gateway, without secrets",
    "revoke_token": "remove a token of the gateway; what it holds open ends",
    "revoke_user": "remove a user from the password file",
    "rules": "whether the rules allow something, and why",
    "me": "what the token of the request may do",
    "bridges": "bridges to other brokers: how they are connected, and what they have relayed",
    "queues": "queues with their depth, oldest message, consumers and dead letters",
    "queue": "one queue",
    "queue_topics": "topics of a queue",
    "channels": "channels with their depth and consumers",
    "channel": "one channel",
    "peek": "messages of a queue, oldest first; nothing is consumed",
    "dead_letters": "dead letters of a queue, oldest first",
}
ACTIONS_OF_THE_GATEWAY = {
    "clear": "delete retained messages by topic filter, as the token's user",
    "create_queue": "create a queue",
    "delete_queue": "delete a queue with its messages and channels",
    "create_channel": "create a channel of a queue, of one topic or of all",
    "delete_channel": "delete a channel; the messages of its queue stay",
    "push": "push one message to a queue",
    "purge_queue": "drop what the channels of a queue have not acknowledged",
    "purge_channel": "drop what a channel has not acknowledged",
    "redrive": "push the dead letters of a queue to where they came from",
}
DESTROYED = {
    "clear": "the retained messages of these topics; their records stay",
    "delete_queue": "its messages and channels",
    "delete_channel": "its place in the queue",
    "purge_queue": "what its channels have not acknowledged",
    "purge_channel": "what it has not acknowledged",
}
REVOKED = "whoever uses it is refused from then on"
STREAMS, STREAMS_LINE = "streams", "streams, their partitions added up"


Method = Literal["get", "post", "delete"]


class Question(NamedTuple):
    """path: of REST, below /api/v1; method: with "post" the request is an object in the body, else parameters

    destroys: what is lost by it; empty: nothing. is_remote: only the gateway answers it
    in_path: fields of the request that the path has as `{name}`; in_body: those that go as an object beside them"""

    name: str
    request: type[q.Request]
    answer: type
    path: str
    method: Method = "get"
    destroys: str = ""
    is_remote: bool = False
    in_path: frozenset[str] = frozenset()
    in_body: frozenset[str] = frozenset()

    @property
    def is_action(self) -> bool:
        """It changes something."""
        return self.method != "get"

    def located(self, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The path with its parameters, and what is left."""
        rest, path = dict(given), self.path
        for name in self.in_path:
            path = path.replace(f"{{{name}}}", quote(str(rest.pop(name)), safe=""))
        return path, rest


def lines() -> dict[str, str]:
    """What can be asked, by name, each with a line of help."""
    found = {each.name: each.summary for each in TABLE}
    found[STREAMS] = STREAMS_LINE
    found |= {name: each.summary for name, each in KAFKA_OPERATIONS.items()}
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
    if (of_kafka := KAFKA_OPERATIONS.get(name)) is not None:
        path, way = (f"actions/{name}", "post") if of_kafka.destroys else (name, "get")
        return Question(name, of_kafka.request, of_kafka.answer, path, cast(Method, way), of_kafka.destroys)
    from rumq.gateway.contract.endpoints import ENDPOINTS

    endpoint = next(each for each in ENDPOINTS if each.name == name)
    if endpoint.in_path:
        return placed(endpoint)
    if name in ACTIONS_OF_THE_GATEWAY:
        path = f"actions/{name}"
        return Question(name, endpoint.request, endpoint.answer, path, "post", DESTROYED[name], is_remote=True)
    means: Method = "delete" if endpoint.method == "delete" else "get"
    return Question(
        name, endpoint.request, endpoint.answer, endpoint.path.removeprefix("/api/v1/"), means,
        REVOKED if means == "delete" else "", is_remote=True,
    )  # fmt: skip


def placed(endpoint: Endpoint) -> Question:
    """Of an endpoint whose path has parameters: its flags are those, and the fields of its body but lists."""
    import msgspec

    request, in_body = endpoint.request, frozenset[str]()
    if endpoint.body is not None:
        fields = [each for each in msgspec.structs.fields(endpoint.body) if flag_type(each) is not None]
        in_body = frozenset(each.encode_name for each in fields)
        merged = msgspec.defstruct(
            f"{request.__name__}And{endpoint.body.__name__}",
            [(each.name, flag_type(each), each.default) for each in fields], bases=(request,), kw_only=True,
        )  # fmt: skip
        request = cast(type[q.Request], merged)
    return Question(
        endpoint.name, request, endpoint.answer, endpoint.described_path.removeprefix("/api/v1/"),
        cast(Method, endpoint.method), DESTROYED.get(endpoint.name, ""), is_remote=True, in_path=endpoint.in_path,
        in_body=in_body,
    )  # fmt: skip


def flag_type(field: FieldInfo) -> Any:
    """Of a field of a body; JSON of any kind is given as a text. None: it is a list, for which there are no flags."""
    import msgspec

    if msgspec.Raw in (field.type, *get_args(field.type)):
        return str
    return field.type if field.default_factory is msgspec.NODEFAULT else None
