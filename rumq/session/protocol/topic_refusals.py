"""Topics that are well formed, and that this broker takes no message to or no subscription for. MQTT 5.0, 4.7 and 4.8.

What is malformed ends the connection (`rumq.mqtt.topics`); what is only refused is answered: with 0x90 or 0x87 in
PUBACK and PUBREC, with 0x8F in SUBACK. What a client may do is `rumq.session.protocol.authorization`'s."""

from __future__ import annotations

from typing import NamedTuple

from rumq.mqtt.errors import TopicFilterInvalid, TopicNameInvalid
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import SHARE_PREFIX, check_topic_filter, check_topic_name, is_reserved
from rumq.session.flow_control.limits import Limits
from rumq.session.protocol.replay_syntax import PREFIX as REPLAY_PREFIX

# How a filter says how it is to be served; so no filter can name a topic that begins like that.
WORDS_OF_FILTERS = (REPLAY_PREFIX, SHARE_PREFIX)


class Refusal(NamedTuple):
    """acknowledged: whether a client before MQTT 5 is told that its message was taken (3.1.1, 3.3.5-2); else it is
    disconnected, for only so does it keep the message"""

    reason: Reason
    why: str
    acknowledged: bool


def of_name(topic: str, limits: Limits, mount: str) -> Refusal | None:
    """Why nobody may publish to a well-formed topic name; None: somebody may. mount: what the client's begin with"""
    if is_reserved(topic):
        return Refusal(Reason.NOT_AUTHORIZED, "$SYS is the broker's", True)
    for word in WORDS_OF_FILTERS:
        if topic.removeprefix(mount).startswith(word):
            why = f"nobody could subscribe to a topic that begins with {word}"
            return Refusal(Reason.TOPIC_NAME_INVALID, why, True)
    try:
        check_topic_name(topic, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max)
    except TopicNameInvalid as fault:
        return Refusal(Reason.TOPIC_NAME_INVALID, fault.message, False)
    return None


def of_filter(plain: str, limits: Limits, mount: str) -> str:
    """Why nobody may subscribe to a well-formed filter; empty: somebody may.

    plain: without what says how it is to be served; mount: as of `of_name`"""
    for word in WORDS_OF_FILTERS:
        if plain.removeprefix(mount).startswith(word):
            return f"{word} stands at the beginning of a filter, once, and a replay is not shared"
    try:
        check_topic_filter(plain, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max)
    except TopicFilterInvalid as fault:
        return fault.message
    return ""
