"""Names of queues, topics and channels, and the MQTT topics that they stand for. docs/reference/queues.md, "Names"

    $queues/<label>/<topic>                 a message of a queue; topic `__none__`: pushed without one
    $queues/$dead/<label>/<topic>           a message of queue `<label>.dead`: a dead letter, which is kept longer
    $queues/$config/<label>                 the definition of a queue, retained
    $queues/$config/<label>/<channel id>    the definition of a channel, retained
    $queues/$tries/<label>/<channel id>     a failed try
    $queues/$delayed/<label>/<topic>        a message that is not due yet
    $share/<channel id>/$queues/<label>/#   the channel

Labels, topics and channel ids are folded at every door before anything else, so `News` is `news`."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from rumq.queues.rules.errors import BadQueueRequest, shown

ROOT = "$queues/"
CONFIG, TRIES, DELAYED = f"{ROOT}$config/", f"{ROOT}$tries/", f"{ROOT}$delayed/"
DEAD_ROOT = f"{ROOT}$dead/"
NO_TOPIC = "__none__"  # of messages that were pushed without a topic; nobody may name it
DEAD = ".dead"  # behind a label: the queue of its dead letters
LABEL_BYTES_MAX, TOPIC_BYTES_MAX, CHANNEL_BYTES_MAX = 200, 500, 64
NUMBER_MAX = (1 << 63) - 1


class MessageId(NamedTuple):
    """Which message of a queue: the number of its topic's messages up to it, from 1, dense, never given to another.

    topic: folded; `__none__` where it was pushed without one"""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.number}@{self.topic}"


def folded(name: str) -> str:
    """In composed form and lower case; folding it again changes nothing."""
    while (again := unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())) != name:
        name = again
    return name


def check_label(label: str) -> str:
    """The label, folded. raises: BadQueueRequest"""
    found = checked("label", label, LABEL_BYTES_MAX)
    if "/" in found:
        raise BadQueueRequest(f"label {shown(label)}: a label has no '/'; topics have")
    if found == DEAD:
        raise BadQueueRequest(f"label {DEAD} names no queue: expected a label before it")
    if found.startswith("$"):
        raise BadQueueRequest(f"label {shown(label)}: what begins with '$' is the broker's: begin with a letter")
    return found


def check_topic(topic: str | None) -> str:
    """The topic, folded; `__none__` for none. raises: BadQueueRequest"""
    if topic is None:
        return NO_TOPIC
    found = checked("topic", topic, TOPIC_BYTES_MAX)
    if found == NO_TOPIC:
        raise BadQueueRequest(f"topic {NO_TOPIC} is reserved for messages without one: leave the topic out")
    return found


def check_channel_id(channel_id: str) -> str:
    """A channel's id, folded. raises: BadQueueRequest"""
    found = checked("channel id", channel_id, CHANNEL_BYTES_MAX)
    if "/" in found or found.startswith("$"):
        raise BadQueueRequest(f"channel id {shown(channel_id)}: it has no '/', and does not begin with '$'")
    return found


def checked(what: str, name: str, bytes_max: int) -> str:
    """A name, folded, that can be part of an MQTT topic. raises: BadQueueRequest"""
    if not name:
        raise BadQueueRequest(f"the {what} is empty: expected 1 to {bytes_max} bytes")
    # Before it is folded: that takes time in its length, and makes no name shorter than a third.
    if len(name) > bytes_max:
        raise BadQueueRequest(f"{what} {shown(name)}: expected at most {bytes_max} bytes")
    found = folded(name)
    try:
        size = len(found.encode())
    except UnicodeEncodeError:
        raise BadQueueRequest(f"{what} {shown(name)}: it is no text (a lone surrogate)") from None
    if size > bytes_max:
        raise BadQueueRequest(f"{what} {shown(name)}: {size} bytes, expected at most {bytes_max}")
    for sign in found:
        if sign in "+#" or unicodedata.category(sign) in ("Cc", "Cn", "Co"):
            raise BadQueueRequest(f"{what} {shown(name)}: it must not contain {sign!r}")
    return found


def parse_message_id(text: str) -> MessageId:
    """`<number>@<topic>`, as `str(MessageId)`. raises: BadQueueRequest"""
    number, found, topic = text.partition("@")
    if not found or not (number.isascii() and number.isdecimal() and len(number) < 20) or not topic:
        raise BadQueueRequest(f"message id {shown(text)}: expected <number>@<topic>, such as 17@{NO_TOPIC}")
    if not 0 < int(number) <= NUMBER_MAX:
        raise BadQueueRequest(f"message id {shown(text)}: messages of a topic are numbered from 1")
    return MessageId(NO_TOPIC if folded(topic) == NO_TOPIC else check_topic(topic), int(number))


def root_of(label: str) -> str:
    """Of the topics of a queue, with a slash at the end."""
    return f"{DEAD_ROOT}{label.removesuffix(DEAD)}/" if label.endswith(DEAD) else f"{ROOT}{label}/"


def message_topic(label: str, topic: str) -> str:
    return root_of(label) + topic


def split_topic(message_topic: str) -> tuple[str, str]:
    """(label, topic) of a message."""
    label, _, topic = message_topic.removeprefix(ROOT).partition("/")
    if label == "$dead":
        label, _, topic = topic.partition("/")
        label += DEAD
    return label, topic


def channel_filter(label: str, topic: str | None) -> str:
    """What a channel sees. topic: None: all of the queue"""
    return root_of(label) + ("#" if topic is None else topic)


def share_filter(channel_id: str, label: str, topic: str | None) -> str:
    """What a consumer subscribes to over MQTT."""
    return f"$share/{channel_id}/{channel_filter(label, topic)}"


def dead_label(label: str) -> str:
    """The queue that gets a queue's dead letters; of those that fail there, itself."""
    return label if label.endswith(DEAD) else f"{label}{DEAD}"
