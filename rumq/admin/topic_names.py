"""Which fields of an answer tell topics or payloads: declared with each operation, and taken out by that declaration.

A rule that forbids a topic forbids its name in every answer. docs/guides/security.md, "Rules over HTTP"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from msgspec import Struct

# topic: a topic name; filter: a topic filter as a client wrote it; level: the begin of topics, without its last slash
Kind = Literal["topic", "filter", "level"]
Knows = Callable[[Kind, str], bool]


class TopicField(NamedTuple):
    """A field that tells topics. path: names of fields from the answer on, "topics.topic"; of a list each element"""

    path: str
    kind: Kind = "topic"


class Tells(NamedTuple):
    """What an answer tells of topics.

    places: fields, of which the elements are left out whose topics the reader may not read
    asked: the field of the request that names a topic, filter or level; "": none
    payloads: an answer has payloads, which the role administer alone does not give
    anywhere: topics are in places that cannot be told apart, in sentences: for those who may read everything
    in_shards: the shards leave rows out, because pages and sums are made there"""

    places: tuple[TopicField, ...] = ()
    asked: TopicField | None = None
    payloads: bool = False
    anywhere: bool = False
    in_shards: bool = False


NO_TOPICS = Tells()
ANY_TOPIC = Tells(anywhere=True)


def leave_out(answer: Struct, tells: Tells, knows: Knows) -> None:
    """Remove from an answer what the reader may not know; changes it."""
    for place in tells.places:
        _stays(answer, place.path.split("."), place.kind, knows)


def _stays(node: object, path: list[str], kind: Kind, knows: Knows) -> bool:
    """Whether an element of a list stays; lists below it lose theirs."""
    if not path:
        return knows(kind, str(node))
    value = getattr(node, path[0])
    if isinstance(value, list):
        setattr(node, path[0], [each for each in value if _stays(each, path[1:], kind, knows)])
        return True
    return value is None or _stays(value, path[1:], kind, knows)
