"""What REST takes and tells of queues and channels. docs/reference/gateway.md, "Queues"."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from rumq.admin import requests as q
from rumq.admin.answers import Answer
from rumq.admin.units import field, number, text
from rumq.gateway.contract.problems import Problem
from rumq.queues import ChannelSettings, QueueSettings

MESSAGES_MAX = 1_000  # of a request: to push, to be given, to be answered
WAIT_SECONDS_MAX = 25
CREDIT_USUAL = 100
Label = Annotated[str, text("of a queue, in any case", 200, 1)]
ChannelId = Annotated[str, text("of a channel, in any case", 64, 1)]
QueueTopic = Annotated[str, text("a topic of the queue, in any case; it may have slashes", 500, 1)]
ConsumerName = Annotated[str, text("a name of the program's own, or the one that an answer gave", 100, 1)]
MessageIdText = Annotated[str, text("as messages have it: 17@news, or 17@__none__", 600, 1)]


class OneQueue(q.Request, kw_only=True):
    label: Label


class OneChannel(q.Request, kw_only=True):
    id: ChannelId


class OneConsumer(OneChannel, kw_only=True):
    consumer: ConsumerName


class QueueSearch(q.Request, kw_only=True):
    label: Annotated[str | None, field("part of the label; null: all")] = None


class ChannelSearch(q.Request, kw_only=True):
    queue: Annotated[str | None, field("label of their queue; null: of all")] = None


class TopicChannel(OneQueue, kw_only=True):
    topic: QueueTopic


class PushTo(OneQueue, kw_only=True):
    ids: Annotated[bool, field("answer the id of each message, which takes some 50 ms; false: without")] = True


class PeekMessages(OneQueue, kw_only=True):
    topic: Annotated[str | None, field("a topic of the queue; null: all")] = None
    after_us: Annotated[int, number("only messages that were pushed later", "µs since 1970", 0, (1 << 63) - 1)] = 0
    max: Annotated[int, number("messages at most", "messages", 1, 200)] = 20


class TakeMessages(OneChannel, kw_only=True):
    max: Annotated[int, number("messages at most", "messages", 1, MESSAGES_MAX)] = 10
    wait: Annotated[float, number("how long to wait if there is none", "seconds", 0, WAIT_SECONDS_MAX)] = 0.0
    consumer: (
        Annotated[str, text("who asks: what it was given is its own for the visible time; null: a new one", 100, 1)]
        | None
    ) = None
    credit: Annotated[
        int, number("what the consumer may hold without an answer, from its first request on", "messages", 1, 1_000)
    ] = CREDIT_USUAL
    queue: Annotated[str | None, field("label of the queue that the channel must be of; null: any")] = None


class RedriveMessages(OneQueue, kw_only=True):
    max: Annotated[int, number("messages at most", "messages", 1, 1_000_000)] = 10_000


class NoFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An empty object, or nothing."""


class NewQueue(QueueSettings, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Every field may be left out."""


class NewChannel(ChannelSettings, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Every field may be left out. id: a name of the program's own, so that asking again is safe; null: a new one"""

    id: ChannelId | None = None


class NewChannelOfAll(NewChannel, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """topic: null: of all of the queue"""

    topic: QueueTopic | None = None


class PushMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message to push."""

    topic: QueueTopic | None = None
    payload: Annotated[
        msgspec.Raw,
        field("text; base64 as `encoding` says; or any other JSON value, which is pushed as it is written"),
    ] = msgspec.field(default_factory=lambda: msgspec.Raw(b'""'))
    encoding: Literal["utf-8", "base64", "json"] = "utf-8"
    key: (
        Annotated[str, text("messages of one key are consumed in order, on channels that ask for it", 1_000)] | None
    ) = None
    headers: Annotated[list[tuple[str, str]], msgspec.Meta(max_length=100)] = []
    content_type: Annotated[str, text("of the payload", 1_000)] = ""
    delay_seconds: Annotated[float, number("before which nobody gets it", "seconds", 0, 30 * 86_400)] = 0.0
    expiry_seconds: (
        Annotated[int, number("after which it is gone; null: the queue's time to live", "seconds", 1, 30 * 86_400)]
        | None
    ) = None


class BinaryPushMessage(PushMessage, kw_only=True, forbid_unknown_fields=True):
    """In MessagePack a payload is bytes."""

    payload: bytes = b""  # type: ignore[assignment]


class RefusedPush(msgspec.Struct, kw_only=True):
    """number: of the message in the batch, from 0"""

    number: int
    kind: Annotated[str, field("full, invalid, not_allowed or unavailable")]
    why: str


class PushedMessages(Answer, kw_only=True):
    """The broker has them, as safe as the stream of queues promises."""

    accepted: Annotated[int, field("", "messages")]
    ids: Annotated[
        list[str | None],
        field("of each message; null: refused, delayed, or its place is not known to this node yet"),
    ] = msgspec.field(default_factory=list)


class RefusedPushes(Problem, kw_only=True):
    """The other messages are pushed."""

    accepted: Annotated[int, field("", "messages")] = 0
    refused: list[RefusedPush] = msgspec.field(default_factory=list)
    ids: list[str | None] = msgspec.field(default_factory=list)


class Acknowledgements(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What became of messages that a consumer holds."""

    consumer: ConsumerName
    acknowledge: Annotated[
        list[MessageIdText], msgspec.Meta(max_length=MESSAGES_MAX, description="these are done")
    ] = []
    reject: Annotated[
        list[MessageIdText],
        msgspec.Meta(max_length=MESSAGES_MAX, description="these failed: a try is counted, they are given out again"),
    ] = []
    extend: Annotated[
        list[MessageIdText],
        msgspec.Meta(max_length=MESSAGES_MAX, description="these are held for `seconds` from now on"),
    ] = []
    delay_seconds: (
        Annotated[
            float, number("before rejected ones are given out; null: as the channel has it", "seconds", 0, 86_400)
        ]
        | None
    ) = None
    seconds: Annotated[float, number("for `extend`", "seconds", 0.1, 86_400)] = 30.0


class AnsweredMessages(Answer, kw_only=True):
    """done: what was as asked; not_held: ids of which nothing came, for others have them, or had them answered"""

    done: Annotated[int, field("", "messages")]
    not_held: list[str] = msgspec.field(default_factory=list)


class QueueRow(Answer, kw_only=True):
    """A queue. Its figures are estimates, some hundred ms old."""

    label: str
    host: Annotated[str, field("where it is pushed to: this door, as the request named it; any other node serves, too")]
    port: int
    created_us: Annotated[int, field("", "µs since 1970")]
    owner: Annotated[str, field("the user who created it; empty: nobody in particular")]
    ttl_seconds: Annotated[int, field("a message that is older is gone", "seconds")]
    records_max: Annotated[int, field("bound of what is not consumed; 0: none", "messages")]
    bytes_max: Annotated[int, field("likewise", "bytes")]
    when_full: Annotated[str, field("refuse, or drop-oldest")]
    depth: Annotated[int, field("behind the slowest channel", "messages")]
    depth_bytes: Annotated[int, field("likewise", "bytes")]
    oldest_us: Annotated[
        int | None,
        field("when the oldest of them was pushed, about; null: there is none, or it is not known", "µs since 1970"),
    ]
    pushed: Annotated[int, field("through this gateway since its start", "messages")]
    refused: Annotated[int, field("likewise, above the bound", "messages")]
    dropped: Annotated[int, field("likewise, to make room", "messages")]
    consumers: Annotated[int, field("of all its channels")]
    dead: Annotated[int, field("dead letters of its channels that are not sent back", "messages")]
    channels: Annotated[list[str], field("their ids")]


class ChannelRow(Answer, kw_only=True):
    """A channel."""

    id: str
    host: Annotated[str, field("where it is consumed: as of a queue")]
    port: int
    label: Annotated[str, field("of its queue")]
    topic: Annotated[str | None, field("of the queue; null: all of it")]
    created_us: Annotated[int, field("", "µs since 1970")]
    owner: str
    visible_seconds: Annotated[
        float, field("a message that is not acknowledged so long is given to another", "seconds")
    ]
    tries_max: Annotated[int, field("tries after which it is a dead letter; 0: any number", "tries")]
    dead_letters: Annotated[str, field("queue, to LABEL.dead; or drop")]
    is_ordered: Annotated[bool, field("of messages with one key, one at a time")]
    retry_seconds: Annotated[float, field("between a failed try and the next", "seconds")]
    depth: Annotated[int, field("not acknowledged yet", "messages")]
    consumers: int
    in_flight: Annotated[int, field("of the depth, with consumers of this gateway", "messages")]
    acknowledged: Annotated[int, field("since the start", "messages")]
    rejected: Annotated[int, field("likewise", "messages")]
    dead: Annotated[int, field("dead letters", "messages")]
    share: Annotated[str, field("what a consumer over MQTT subscribes to")]


class QueueMessage(msgspec.Struct, kw_only=True):
    """A message of a queue."""

    id: Annotated[str, field("number and topic: of this message for ever, at every node and through every door")]
    number: Annotated[int, field("in its topic, from 1")]
    topic: Annotated[str | None, field("of the queue; null: none")]
    payload: Annotated[str, field("text, or base64 as `encoding` says; in MessagePack bytes")]
    encoding: Annotated[str, field("utf-8, base64 or bytes")]
    tries: Annotated[int, field("which delivery this is, from 1; 0: only looked at")]
    pushed_us: Annotated[int, field("", "µs since 1970")]
    key: str | None = None
    headers: list[tuple[str, str]] = []
    content_type: str = ""
    origin: Annotated[str, field("of a dead letter: where it came from; else empty")] = ""
    dead_tries: Annotated[int, field("of a dead letter: how often it was tried")] = 0


class QueueList(Answer, kw_only=True):
    queues: Annotated[list[QueueRow], field("by label")]


class QueueTopics(Answer, kw_only=True):
    """Those that messages have, or channels name."""

    topics: list[str]


class ChannelList(Answer, kw_only=True):
    channels: Annotated[list[ChannelRow], field("by id")]


class PeekedMessages(Answer, kw_only=True):
    """Oldest first, whoever consumes them."""

    messages: list[QueueMessage]


class TakenMessages(Answer, kw_only=True):
    """They are the consumer's for the channel's visible time."""

    consumer: Annotated[str, field("for the next request, and for acknowledgements")]
    messages: list[QueueMessage]


class RemovedName(Answer, kw_only=True):
    removed: Annotated[str, field("label, id or name of what is gone")]


class CountedMessages(Answer, kw_only=True):
    done: Annotated[int, field("", "messages")]
