"""SUBSCRIBE, UNSUBSCRIBE and the acknowledgements that the kernel leaves over. MQTT 5.0, 3.4 to 3.11."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from router import commands as c
from router.subscription import Subscription
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_filter, is_reserved, parse_share
from rumq.session.flow_control.limits import Limits
from rumq.session.journal.recorder import REFUSED
from rumq.session.protocol import authorization, topic_refusals
from rumq.session.protocol.authorization import Forbidden
from rumq.session.protocol.replay_syntax import BadStart, parse_start, shown, split_replay
from rumq.session.state.subscribed_filters import SubscribedFilters

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70


PUBLISHER = "rumq-publisher"  # user property: of SUBSCRIBE to ask who publishes, of PUBLISH to tell
FILTERS_A_TURN = 32  # of one client
CHECKS_A_TURN = 256  # likewise, before the first of them is served


def wanted(link: Link, filters: Iterable[p.Subscription]) -> list[tuple[str, str]]:
    """The filters of a SUBSCRIBE that may be granted, as written and without what says how they are to be served."""
    plain = []
    for asked in filters:
        try:
            plain.append((asked.topic_filter, parsed(link, asked)[2]))
        except (BadStart, Denied, MqttFault):
            pass  # it will be refused
    return plain


def asks_publisher(link: Link, properties: Properties) -> bool:
    """Whether a SUBSCRIBE asks who publishes, and may."""
    value = dict(properties.get("user_properties", [])).get(PUBLISHER)
    return value == "yes" and link.limits.publisher_available


class Granting:
    """The filters of one SUBSCRIBE, granted or refused one after the other. commands: of those since `tell`"""

    def __init__(self, link: Link, properties: Properties) -> None:
        identifiers = properties.get("subscription_identifiers", [])
        self._identifier = identifiers[0] if identifiers else 0
        asked = dict(properties.get("user_properties", []))
        self._start = asked.get("rumq-from")
        self._publisher = asked.get(PUBLISHER)
        if self._identifier and not link.limits.subscription_identifiers_available:
            raise MqttFault("a subscription identifier", Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED)
        self._link = link
        self._commands: list[c.Command] = []
        self._granted: list[str] = []
        self.reasons: list[Reason] = []
        self.why: str | None = None

    def take(self, filters: Iterable[p.Subscription]) -> None:
        link = self._link
        assert link.session is not None
        known = link.session.asked
        for asked in filters:
            try:
                command = one(link, asked, self._identifier, self._start, known, self._publisher)
            except BadStart as fault:
                self.reasons.append(
                    Reason.TOPIC_FILTER_INVALID if link.version == 5 else Reason.UNSPECIFIED_ERROR
                )
                self.why = str(fault)
            except Forbidden:
                self.reasons.append(Reason.NOT_AUTHORIZED if link.version == 5 else Reason.UNSPECIFIED_ERROR)
                authorization.tell(link, "subscribe", asked.topic_filter)
            except Denied as fault:
                self.reasons.append(fault.reason if link.version == 5 else Reason.UNSPECIFIED_ERROR)
                self.why = fault.why
            else:
                known.add(asked.topic_filter, is_replay=type(command) is c.Replay)
                self._commands.append(command)
                self._granted.append(asked.topic_filter)
                self.reasons.append(Reason(min(asked.qos, link.limits.maximum_qos)))

    def tell(self) -> None:
        """Have the router and the journal know of what was granted."""
        link = self._link
        assert link.session is not None
        link.house.settle()
        for command in self._commands:
            link.house.commands.put(command)
        for topic_filter in self._granted:
            link.house.journal.subscribed(link.session, topic_filter)
        self._commands, self._granted = [], []


def check(link: Link, filters: Iterable[p.Subscription]) -> None:
    """Refuse a SUBSCRIBE with a filter that ends the connection before any other of its filters is granted.

    raises: MqttFault"""
    for asked in filters:
        try:
            parsed(link, asked)
        except (BadStart, Denied):
            pass  # it alone will be refused


def subscribe(link: Link, packet: p.Subscribe) -> None:
    """Grant or refuse each filter; SUBACK goes out before anything that the subscriptions bring."""
    granting = Granting(link, packet.properties)
    granting.take(packet.filters)
    suback(link, packet.packet_id, granting)
    granting.tell()


def suback(link: Link, packet_id: int, granting: Granting) -> None:
    reasons, why = granting.reasons, granting.why
    if why is not None:
        link.house.event("subscribe.refused", link, why=why)
    link.promise(link.explained(p.Suback(packet_id, tuple(reasons)), why), barrier=True)


class Denied(Exception):
    """One filter of a SUBSCRIBE is not granted."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why


def check_publisher(value: str, limits: Limits) -> None:
    """raises: Denied"""
    if value != "yes":
        raise Denied(
            Reason.TOPIC_FILTER_INVALID, f"{PUBLISHER} is {shown(value)}; allowed: yes, or leave it out"
        )
    if not limits.publisher_available:
        raise Denied(
            Reason.IMPLEMENTATION_SPECIFIC_ERROR,
            "this broker does not tell who published (mqtt.publisher_available)",
        )


def parsed(link: Link, asked: p.Subscription) -> tuple[str | None, bool, str]:
    """(where it replays from, whether it is shared, the plain filter); as `one` where it is refused or malformed."""
    plain, start = asked.topic_filter, None
    replay = split_replay(plain)
    if replay is not None:
        start, plain = replay
    check_topic_filter(plain)
    share = parse_share(plain)
    if share is not None:
        plain = share[1]
        if asked.no_local:
            raise ProtocolViolation("No Local on a shared subscription")
    if why := topic_refusals.of_filter(plain, link.limits, link.entrance.mount_point):
        raise Denied(Reason.TOPIC_FILTER_INVALID, why)
    return start, share is not None, plain


def one(
    link: Link,
    asked: p.Subscription,
    identifier: int,
    start: str | None,
    known: SubscribedFilters,
    publisher: str | None = None,
) -> c.Command:
    """The command for one filter; Denied or BadStart when it is refused, MqttFault when it is malformed.

    start, publisher: values of `rumq-from` and `rumq-publisher`, where they are given"""
    house, limits = link.house, link.limits
    session = link.session
    assert session is not None
    subscriber = session.subscriber
    written = asked.topic_filter
    own_start, is_shared, plain = parsed(link, asked)
    start = start if own_start is None else own_start
    if is_shared:
        if start is not None:
            raise BadStart(start, "a shared subscription has one place for all its members")
        if not limits.shared_available:
            raise Denied(Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, "shared subscriptions are switched off")
    if start is not None and is_reserved(plain):
        raise BadStart(start, "what the broker says of itself is not kept")
    if publisher is not None:
        check_publisher(publisher, limits)
    if not limits.wildcard_available and ("+" in plain or "#" in plain):
        raise Denied(Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED, "wildcards are switched off")
    if why := known.refusal(written, limits):
        raise Denied(Reason.QUOTA_EXCEEDED, why)
    allowed = authorization.sight(link.permit, plain, is_replay=start is not None, is_shared=is_shared)
    subscription = Subscription(
        plain,
        min(asked.qos, limits.maximum_qos),
        asked.no_local,
        asked.retain_as_published,
        identifier,
        allowed,
        publisher is not None,
    )
    if is_shared:
        return c.JoinShare(subscriber, written, subscription)
    if start is not None:
        place = parse_start(start, plain, house.now_us)
        if link.permit is None or link.permit.reach("replay", plain) != "none":
            # One that rules forbid whole may be granted all the same, and brings nothing.
            house.event("replay.started", link, filter=plain, start=start)
        return c.Replay(subscriber, written, subscription, place)
    handling = asked.retain_handling
    retained = limits.retain_available and (handling == 0 or (handling == 1 and written not in known))
    return c.Subscribe(subscriber, subscription, retained)


def unsubscribe(link: Link, packet: p.Unsubscribe) -> None:
    """Take subscriptions away; UNSUBACK says for each whether there was one."""
    reasons = take_away(link, packet.filters)
    link.promise(encode(p.Unsuback(packet.packet_id, tuple(reasons)), link.version), barrier=False)


def take_away(link: Link, filters: Iterable[str]) -> list[Reason]:
    assert link.session is not None
    subscriber = link.session.subscriber
    reasons = []
    known = link.session.asked
    link.house.settle()
    for asked in filters:
        reasons.append(Reason.SUCCESS if asked in known else Reason.NO_SUBSCRIPTION_EXISTED)
        if asked in known:
            link.house.journal.unsubscribed(link.session, asked)
        known.discard(asked)
        link.house.commands.put(c.Unsubscribe(subscriber, asked))
    return reasons


def acknowledgement(link: Link, packet: p.Puback | p.Pubrec | p.Pubrel | p.Pubcomp) -> None:
    """An acknowledgement with a reason code or properties."""
    wire = link.wire
    assert wire is not None
    window = wire.window
    packet_id = packet.packet_id
    if isinstance(packet, p.Pubrel):
        known = wire.release(packet_id)
        if known:
            link.note(PUBREL, packet_id)
        reason = Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND
        link.promise(encode(p.Pubcomp(packet_id, reason), link.version), barrier=False)
    elif window is None:
        if isinstance(packet, p.Pubrec) and packet.reason < Reason.UNSPECIFIED_ERROR:
            link.send(p.Pubrel(packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
    elif packet.reason >= Reason.UNSPECIFIED_ERROR and not isinstance(packet, p.Pubcomp):
        if window.refuse(packet_id):
            link.note(REFUSED, packet_id)
    elif isinstance(packet, p.Pubrec):
        known = window.acknowledge(PUBREC, packet_id) >= 0
        if known:
            link.note(PUBREC, packet_id)
        reason = Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND
        link.promise(encode(p.Pubrel(packet_id, reason), link.version), barrier=False)
    else:
        head = PUBACK if isinstance(packet, p.Puback) else PUBCOMP
        if window.acknowledge(head, packet_id) >= 0:
            link.note(head, packet_id)
