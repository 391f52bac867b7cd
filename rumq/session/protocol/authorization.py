"""What a client may do, applied to what it does. docs/guides/security.md, "Authorization"; `rumq.auth.permit` decides.

Publishing to a topic that was allowed before costs nothing here: the kernel finds it in the client's own table of
topics, which has only such ones. Receiving is decided once for each new topic, by the router.

Every subscription's permit is made by `receive_permit`: of SUBSCRIBE, of rules that change, and of an operator who
moves the place of a session."""
# compiled: warm

from __future__ import annotations

import secrets

from router import commands as c
from router.readers.subscription import TopicPermit
from rumq.auth.identity import BROKERS_OWN
from rumq.auth.permit import Permit
from rumq.mqtt import packets as p
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.kernels.ingest import NO_RETAIN
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.topics import parse_share
from rumq.session.connection.broker_port import ClientInfo
from rumq.session.connection.client_state import Client, TopicNumbers
from rumq.session.protocol import topic_refusals
from rumq.session.protocol.replay_syntax import split_replay
from rumq.session.state.session import Session
from rumq.session.state.wills import permits_will

SMALL_MAX = 64  # names of a dictionary; most devices publish to a few topics


class FilterForbidden(Exception):
    """One filter of a SUBSCRIBE, or of a session that is to start elsewhere, is not permitted."""


class EmptyPermit:
    """Permission for nothing, until the client is back and its rules are known."""

    def may_receive(self, topic: str) -> bool:
        return False


NOTHING = EmptyPermit()


def find_permit(client: Client, client_id: str) -> None:
    """Look up what a client may do, once it is known who it is and when rules change."""
    rules, who = client.policy.rules, client.identity
    assert who is not None
    client.permit = None if rules is None or who.method == BROKERS_OWN else rules.permit(who, client_id)
    if who.is_own:
        client.topics = {}  # of its own: it may publish where no client may
    else:
        client.topics = client.broker.publishing.topics if client.permit is None else topics_of(client.permit)
    if client.wire is not None:
        client.wire.forget_topics()


def recheck_subscriptions(client: Client) -> None:
    """Hold what the session has subscribed to before to what the client may do now."""
    session = client.session
    assert session is not None
    if session.asked and (client.permit is not None or session.guarded):
        restrict_subscriptions(client)
    session.guarded = client.permit is not None


def restrict_subscriptions(client: Client) -> None:
    """Tell the router what each subscription may receive now."""
    session = client.session
    assert session is not None
    permits: dict[str, TopicPermit | None] = {}
    for asked, is_replay in session.asked.items():
        try:
            shared = parse_share(asked)
        except TopicFilterInvalid:
            continue
        written = split_replay(asked) if is_replay else None
        plain = shared[1] if shared else written[1] if written else asked
        try:
            permits[asked] = receive_permit(
                client.permit, plain, is_replay=is_replay, is_shared=shared is not None, quiet=True
            )
        except FilterForbidden:  # of a shared subscription: its messages are for the others
            session.asked.discard(asked)
            client.broker.journal.unsubscribed(session, asked)
            client.broker.delivery.commands.put(c.RemoveSubscription(session.subscriber, asked))
    client.broker.delivery.commands.put(c.ChangePermits(session.subscriber, permits))


def receive_permit(
    permit: Permit | None, topic_filter: str, *, is_replay: bool, is_shared: bool, quiet: bool = False
) -> TopicPermit | None:
    """What a subscription may bring; None: everything. quiet: even if that is nothing. raises: FilterForbidden"""
    if permit is None:
        return None
    reach = permit.reach("replay" if is_replay else "subscribe", topic_filter)
    if reach == "all":
        return None
    if is_shared or (reach == "none" and not quiet and not permit.quiet):
        raise FilterForbidden
    return permit.past if is_replay else permit.live


def replay_permit(session: Session, client: ClientInfo | None, topic_filter: str) -> TopicPermit | None:
    """What a subscription may bring that the operator has start in the past; None: everything.

    client: None while it is away: then nothing, until it is back and what it may do is known
    raises: FilterForbidden"""
    if client is None:
        session.guarded = True
        return NOTHING
    permit = client.permit
    if permit is not None and permit.reach("replay", topic_filter) == "none":
        raise FilterForbidden
    return receive_permit(permit, topic_filter, is_replay=True, is_shared=False)


def may_receive_again(client: ClientInfo, topic: str, reader: int) -> bool:
    """Whether a message that was in flight may be sent again. reader: the number of the one that had it"""
    session, permit = client.session, client.permit
    assert session is not None
    if not topic.startswith(client.policy.mount_point):
        return False
    if permit is None:
        return True
    is_replay = any(each.number == reader for each in session.subscriber.replays.values())
    return (permit.past if is_replay else permit.live).may_receive(topic)


# Publishing


def topics_of(permit: Permit) -> TopicNumbers:
    if permit.topics is None:
        permit.topics = {}
    found: TopicNumbers = permit.topics
    return found


def allow_topic(client: Client, name: bytes, topic: str) -> None:
    """Messages to a topic are taken from now on: the client's own table has it. name: of a topic that has a number"""
    permit, number = client.permit, client.broker.publishing.topics_with(name)[name]
    allowed = client.topics if permit is None or client.is_own else topics_of(permit)
    if isinstance(allowed, dict) and len(allowed) >= SMALL_MAX:
        table = TopicTable(secrets.randbits(64))
        for key, value in allowed.items():
            table[key] = value
        allowed = table
        if permit is not None and not client.is_own:
            permit.topics = table
    allowed[name] = number if permit is None or permit.may("retain", topic) else number | NO_RETAIN
    client.topics = allowed


def may_publish(client: Client, packet: p.Publish, topic: str) -> bool:
    permit = client.permit
    return permit is None or (permit.may("publish", topic) and not (packet.retain and not permit.may("retain", topic)))


def permitted_will(client: Client, connect: p.Connect) -> p.Will | None:
    """The will, unless it may not be published."""
    will = connect.will
    if will is None:
        return None
    refusal = topic_refusals.of_name(will.topic, client.limits, client.policy.mount_point)
    if refusal is None and permits_will(client.permit, will):
        return will
    report(client, "will", will.topic)
    return None


def report(client: Client, action: str, topic: str) -> None:
    """Tell the operator, the 1st, 2nd, 4th, 8th ... time that a connection tries what it may not."""
    if is_reported(client):
        client.broker.event(
            "permission.refused",
            client,
            user=client.user,
            action=action,
            topic=topic,
            refused=client.refusals,
        )


def is_reported(client: Client) -> bool:
    """Count something that was refused to a connection; whether it is the 1st, 2nd, 4th, 8th ... time."""
    client.refusals += 1
    return client.refusals & (client.refusals - 1) == 0
