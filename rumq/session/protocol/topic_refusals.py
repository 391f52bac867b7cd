"""Well-formed topics and filters that this broker refuses to every client. MQTT 5.0, 4.7 and 4.8.

A malformed one ends the connection (`rumq.mqtt.topics`). A refused one is answered: with 0x90 or 0x87 in PUBACK and
PUBREC, with 0x8F in SUBACK. What one client may do is for `authorization`."""
# compiled: warm

from __future__ import annotations

from rumq.mqtt.errors import TopicFilterInvalid, TopicNameInvalid
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import SHARE_PREFIX, check_topic_filter, check_topic_name, is_reserved
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.flow_control.limits import Limits
from rumq.session.protocol.replay_syntax import PREFIX as REPLAY_PREFIX

# Prefixes of filters with a meaning of their own, so no filter can match a topic that begins with one.
FILTER_PREFIXES = (REPLAY_PREFIX, SHARE_PREFIX)
QUEUES = "$queues"  # `rumq.queues`, at whose doors the bounds of queues hold


def of_name(topic: str, limits: Limits, mount: str, *, is_own: bool = False) -> PublishRefusal | None:
    """Why nobody may publish to a well-formed topic name; None: somebody may. mount: prefix of the client's topics

    is_own: the client is a process of the broker's own"""
    if is_reserved(topic):
        return PublishRefusal(Reason.NOT_AUTHORIZED, "$SYS is the broker's", True)
    if not is_own and topic.partition("/")[0] == QUEUES:
        why = "queues are pushed to through REST or gRPC, where their bounds hold (docs/reference/queues.md)"
        return PublishRefusal(Reason.NOT_AUTHORIZED, why, True)
    for prefix in FILTER_PREFIXES:
        if topic.removeprefix(mount).startswith(prefix):
            why = f"nobody could subscribe to a topic that begins with {prefix}"
            return PublishRefusal(Reason.TOPIC_NAME_INVALID, why, True)
    try:
        check_topic_name(topic, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max)
    except TopicNameInvalid as fault:
        return PublishRefusal(Reason.TOPIC_NAME_INVALID, fault.message, False)
    return None


def of_filter(plain: str, limits: Limits, mount: str) -> str:
    """Why nobody may subscribe to a well-formed filter; empty: somebody may.

    plain: without `$share/...` and `$log/...`; mount: as of `of_name`"""
    for prefix in FILTER_PREFIXES:
        if plain.removeprefix(mount).startswith(prefix):
            return f"{prefix} stands at the beginning of a filter, once, and a replay is not shared"
    try:
        check_topic_filter(plain, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max)
    except TopicFilterInvalid as fault:
        return fault.message
    return ""
