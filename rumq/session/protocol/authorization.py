"""What a client may do, held against what it does. docs/security.md, "Authorization".

Publishing costs nothing here for a topic that was allowed before: the client's kernel walks on by its own table of
topics, in which only such ones are. Receiving is decided once for each new topic, by the router.

Knows no rule: `rumq.auth.permit` decides."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from router import commands as c
from router.subscription import Permit as Sight
from rumq.auth.permit import Permit
from rumq.mqtt import packets as p
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.kernels.ingest import NO_RETAIN
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import parse_share
from rumq.session.protocol import topic_refusals
from rumq.session.protocol.replay_syntax import split_replay
from rumq.session.protocol.topic_creation import new_topic
from rumq.session.state.wills import permits_will

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

SMALL_MAX = 64  # names of a dictionary; most devices publish to a few topics


class Forbidden(Exception):
    """One filter of a SUBSCRIBE is not permitted."""


def find(link: Link, client_id: str) -> None:
    """The client is known: find out what it may do."""
    rules = link.entrance.rules
    assert link.who is not None
    link.permit = None if rules is None else rules.permit(link.who, client_id)
    link.topics = link.house.topics if link.permit is None else topics_of(link.permit)
    if link.wire is not None:
        link.wire.forget_topics()


def hold(link: Link) -> None:
    """Hold what the session has asked for before to what the client may do."""
    session = link.session
    assert session is not None
    if session.asked and (link.permit is not None or session.guarded):
        look_again(link)
    session.guarded = link.permit is not None


def look_again(link: Link) -> None:
    """Tell the router what each subscription may receive now."""
    session = link.session
    assert session is not None
    sights: dict[str, Sight | None] = {}
    for asked, is_replay in session.asked.items():
        try:
            shared = parse_share(asked)
        except TopicFilterInvalid:
            continue
        written = split_replay(asked) if is_replay else None
        plain = shared[1] if shared else written[1] if written else asked
        try:
            sights[asked] = sight(
                link.permit, plain, is_replay=is_replay, is_shared=shared is not None, quiet=True
            )
        except Forbidden:  # of a shared subscription: its messages are for the others
            session.asked.discard(asked)
            link.house.journal.unsubscribed(session, asked)
            link.house.commands.put(c.Unsubscribe(session.subscriber, asked))
    link.house.commands.put(c.Permits(session.subscriber, sights))


def sight(
    permit: Permit | None, topic_filter: str, *, is_replay: bool, is_shared: bool, quiet: bool = False
) -> Sight | None:
    """What a subscription may bring; None: everything. quiet: even if that is nothing. raises: Forbidden"""
    if permit is None:
        return None
    reach = permit.reach("replay" if is_replay else "subscribe", topic_filter)
    if reach == "all":
        return None
    if is_shared or (reach == "none" and not quiet and not permit.quiet):
        raise Forbidden
    return permit.past if is_replay else permit.live


def may_receive_again(link: Link, topic: str, reader: int) -> bool:
    """Whether a message that was in flight may be sent once more. reader: the number of the one that had it"""
    session, permit = link.session, link.permit
    assert session is not None
    if not topic.startswith(link.entrance.mount_point):
        return False
    if permit is None:
        return True
    is_replay = any(each.number == reader for each in session.subscriber.replays.values())
    return (permit.past if is_replay else permit.live).may_receive(topic)


# Publishing


def topics_of(permit: Permit) -> Any:
    if permit.topics is None:
        permit.topics = {}
    return permit.topics


def meet_topic(link: Link, name: bytes, topic: str) -> bool:
    """Whether messages to a topic may be taken, now and from now on; if so the link's topics have it."""
    permit, known = link.permit, link.house.topics
    assert permit is not None
    if not permit.may("publish", topic):
        return False
    if known.get(name) is None and not new_topic(link, name):
        return False
    allowed = topics_of(permit)
    if isinstance(allowed, dict) and len(allowed) >= SMALL_MAX:
        table = permit.topics = TopicTable(secrets.randbits(64))
        for key, value in allowed.items():
            table[key] = value
        allowed = table
    allowed[name] = known[name] if permit.may("retain", topic) else known[name] | NO_RETAIN
    link.topics = allowed
    return True


def may_publish(link: Link, packet: p.Publish, topic: str) -> bool:
    permit = link.permit
    return permit is None or (
        permit.may("publish", topic) and not (packet.retain and not permit.may("retain", topic))
    )


def refuse_publish(link: Link, packet: p.Publish, topic: str) -> None:
    """Answer a PUBLISH that is not permitted. MQTT 5.0, 3.3.4; a 3.1.1 client is answered as if it was (3.3.5-2)."""
    permit = link.permit
    retain_only = permit is not None and permit.may("publish", topic)
    tell(link, "retain" if retain_only else "publish", topic)
    if packet.qos:
        answer_refused(link, packet, Reason.NOT_AUTHORIZED, "this client may not publish here")


def answer_refused(link: Link, packet: p.Publish, reason: Reason, why: str) -> None:
    """Acknowledge a PUBLISH of QoS 1 or 2 that was not taken; before MQTT 5 there are no reasons."""
    kind = p.Puback if packet.qos == 1 else p.Pubrec
    assert packet.packet_id is not None and link.wire is not None
    told = reason if link.version == 5 else Reason.SUCCESS
    link.wire.acks += link.explained(kind(packet.packet_id, told), why)
    link.wire.answers += 1


def permitted_will(link: Link, connect: p.Connect) -> p.Will | None:
    """The will, unless it may not be published."""
    will, permit = connect.will, link.permit
    if will is None:
        return None
    if topic_refusals.of_name(will.topic, link.limits, link.entrance.mount_point) is None and permits_will(
        permit, will
    ):
        return will
    tell(link, "will", will.topic)
    return None


def tell(link: Link, action: str, topic: str) -> None:
    """Tell the operator, the 1st, 2nd, 4th, 8th ... time that a connection tries what it may not."""
    if is_to_be_told(link):
        user = link.who.user if link.who is not None else None
        link.house.event(
            "permission.refused", link, user=user, action=action, topic=topic, refused=link.forbidden
        )


def is_to_be_told(link: Link) -> bool:
    """Count something that was refused to a connection; whether it is the 1st, 2nd, 4th, 8th ... time."""
    link.forbidden += 1
    return link.forbidden & (link.forbidden - 1) == 0
