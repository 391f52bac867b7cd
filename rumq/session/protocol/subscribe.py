"""SUBSCRIBE and UNSUBSCRIBE: each filter granted or refused; shared subscriptions, replays. MQTT 5.0, 3.8 to 3.11."""
# compiled: warm

from __future__ import annotations

from collections.abc import Iterable

from router import commands as c
from router.readers.subscription import Subscription
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_filter, is_reserved, parse_share
from rumq.session.connection.client_state import Client, RequestResponder
from rumq.session.flow_control.limits import Limits
from rumq.session.protocol import authorization, topic_refusals
from rumq.session.protocol.authorization import FilterForbidden
from rumq.session.protocol.reason_strings import explained
from rumq.session.protocol.replay_syntax import RETAINED, BadStart, parse_start, shown, split_replay
from rumq.session.state.persistent_sessions import holder_of
from rumq.session.state.subscribed_filters import SubscribedFilters

FROM = "rumq-from"  # user property: of SUBSCRIBE to begin in the past
END = "rumq-end"  # user property: of SUBSCRIBE to be told where the log ended when the replay began
PUBLISHER = "rumq-publisher"  # user property: of SUBSCRIBE to ask who publishes, of PUBLISH to tell
PLACE = "rumq-place"  # user property of SUBSCRIBE: to ask where in the log live messages are, as of replays
FILTERS_A_TURN = 4  # of one client
CHECKS_A_TURN = 16  # likewise, before the first of them is served


def wanted(client: Client, filters: Iterable[p.SubscriptionRequest]) -> list[tuple[str, str]]:
    """The filters of a SUBSCRIBE that may be granted, as written and without what says how they are to be served."""
    plain = []
    for asked in filters:
        try:
            plain.append((asked.topic_filter, parsed(client, asked)[2]))
        except (BadStart, FilterDenied, MqttFault):
            pass  # it will be refused
    return plain


def asks_publisher(client: Client, properties: Properties) -> bool:
    """Whether a SUBSCRIBE asks who publishes, and may."""
    value = dict(properties.get("user_properties", [])).get(PUBLISHER)
    return value == "yes" and client.limits.publisher_available


class Granting:
    """The filters of one SUBSCRIBE, granted or refused one after the other. commands: of those since `apply`"""

    def __init__(self, client: Client, properties: Properties) -> None:
        identifiers = properties.get("subscription_identifiers", [])
        self._identifier = identifiers[0] if identifiers else 0
        asked = dict(properties.get("user_properties", []))
        self._start = asked.get(FROM)
        self._publisher = asked.get(PUBLISHER)
        self._end = asked.get(END)
        self._place = asked.get(PLACE)
        if self._identifier and not client.limits.subscription_identifiers_available:
            raise MqttFault("a subscription identifier", Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED)
        self._client = client
        self._commands: list[c.Command] = []
        self._granted: list[str] = []
        self.reasons: list[Reason] = []
        self.why: str | None = None

    def grant(self, filters: Iterable[p.SubscriptionRequest]) -> None:
        client = self._client
        assert client.session is not None
        known = client.session.own_filters()
        known.count_for(holder_of(client.user, client.address), client.broker.registry.filter_totals)
        for asked in filters:
            try:
                command = subscribe_command(
                    client, asked, self._identifier, self._start, known, self._publisher, self._end, self._place
                )
            except BadStart as fault:
                self.reasons.append(Reason.TOPIC_FILTER_INVALID if client.version == 5 else Reason.UNSPECIFIED_ERROR)
                self.why = str(fault)
            except FilterForbidden:
                self.reasons.append(Reason.NOT_AUTHORIZED if client.version == 5 else Reason.UNSPECIFIED_ERROR)
                authorization.report(client, "subscribe", asked.topic_filter)
            except FilterDenied as fault:
                self.reasons.append(fault.reason if client.version == 5 else Reason.UNSPECIFIED_ERROR)
                self.why = fault.why
            else:
                known.add(asked.topic_filter, is_replay=type(command) is c.Replay)
                self._commands.append(command)
                self._granted.append(asked.topic_filter)
                self.reasons.append(Reason(min(asked.qos, client.limits.maximum_qos)))

    def apply(self) -> None:
        """Have the router and the journal know of what was granted."""
        client = self._client
        assert client.session is not None
        client.broker.delivery.settle()
        for command in self._commands:
            client.broker.delivery.commands.put(command)
        for topic_filter in self._granted:
            client.broker.journal.subscribed(client.session, topic_filter)
        self._commands, self._granted = [], []


def check(client: Client, filters: Iterable[p.SubscriptionRequest]) -> None:
    """Refuse a SUBSCRIBE with a filter that ends the connection before any other of its filters is granted.

    raises: MqttFault"""
    for asked in filters:
        try:
            parsed(client, asked)
        except (BadStart, FilterDenied):
            pass  # it alone will be refused


def subscribe(responder: RequestResponder, packet: p.Subscribe) -> None:
    """Grant or refuse each filter; SUBACK goes out before anything that the subscriptions bring."""
    responder.ensure_active()
    granting = Granting(responder.client, packet.properties)
    granting.grant(packet.filters)
    suback(responder, packet.packet_id, granting)
    granting.apply()


def suback(responder: RequestResponder, packet_id: int, granting: Granting) -> None:
    client, reasons, why = responder.client, granting.reasons, granting.why
    if why is not None:
        client.broker.event("subscribe.refused", client, why=why)
    responder.promise(explained(client, p.Suback(packet_id, tuple(reasons)), why), barrier=True)


class FilterDenied(Exception):
    """One filter of a SUBSCRIBE is not granted."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why


def check_yes(name: str, value: str | None) -> bool:
    """Whether a property that can only be `yes` is there. raises: FilterDenied"""
    if value is not None and value != "yes":
        raise FilterDenied(Reason.TOPIC_FILTER_INVALID, f"{name} is {shown(value)}; allowed: yes, or leave it out")
    return value is not None


def check_publisher(value: str, limits: Limits) -> None:
    """raises: FilterDenied"""
    check_yes(PUBLISHER, value)
    if not limits.publisher_available:
        raise FilterDenied(
            Reason.IMPLEMENTATION_SPECIFIC_ERROR,
            "this broker does not tell who published (mqtt.publisher_available)",
        )


def check_end(value: str, start: str | None, *, keeps_session: bool) -> None:
    """raises: FilterDenied"""
    if value != "yes":
        raise FilterDenied(Reason.TOPIC_FILTER_INVALID, f"{END} is {shown(value)}; allowed: yes, or leave it out")
    if start is None or start.startswith(RETAINED):
        raise FilterDenied(Reason.TOPIC_FILTER_INVALID, f"{END} is for a replay, by {FROM}, and not with {RETAINED}")
    if keeps_session:
        # Its messages wait for the journal, and the word of the end would overtake them.
        raise FilterDenied(Reason.TOPIC_FILTER_INVALID, f"{END} is for a session without session expiry interval")


def check_shared(client: Client, written: str, start: str | None) -> None:
    """raises: FilterDenied, BadStart"""
    if start is not None:
        raise BadStart(start, "a shared subscription has one place for all its members")
    if not client.limits.shared_available:
        raise FilterDenied(Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, "shared subscriptions are switched off")
    if client.broker.delivery.is_home_away(written):
        raise FilterDenied(
            Reason.IMPLEMENTATION_SPECIFIC_ERROR, "the shard that has this group's cursors is away: subscribe again"
        )


def parsed(client: Client, asked: p.SubscriptionRequest) -> tuple[str | None, bool, str]:
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
    if why := topic_refusals.of_filter(plain, client.limits, client.policy.mount_point):
        raise FilterDenied(Reason.TOPIC_FILTER_INVALID, why)
    return start, share is not None, plain


def subscribe_command(
    client: Client,
    asked: p.SubscriptionRequest,
    identifier: int,
    start: str | None,
    known: SubscribedFilters,
    publisher: str | None = None,
    end: str | None = None,
    asked_place: str | None = None,
) -> c.Command:
    """The command for one filter; FilterDenied or BadStart when it is refused, MqttFault when it is malformed.

    start, publisher, end, asked_place: values of `rumq-from`, `rumq-publisher`, `rumq-end` and `rumq-place`, where they
    are given"""
    broker, limits = client.broker, client.limits
    session = client.session
    assert session is not None
    subscriber = session.subscriber
    written = asked.topic_filter
    own_start, is_shared, plain = parsed(client, asked)
    start = start if own_start is None else own_start
    if is_shared:
        check_shared(client, written, start)
    if start is not None and is_reserved(plain):
        raise BadStart(start, "what the broker says of itself is not kept")
    if publisher is not None:
        check_publisher(publisher, limits)
    if end is not None:
        check_end(end, start, keeps_session=session.durable)
    tells_place = check_yes(PLACE, asked_place)
    if not limits.wildcard_available and ("+" in plain or "#" in plain):
        raise FilterDenied(Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED, "wildcards are switched off")
    if why := known.refusal(written, limits):
        raise FilterDenied(Reason.QUOTA_EXCEEDED, why)
    allowed = authorization.receive_permit(client.permit, plain, is_replay=start is not None, is_shared=is_shared)
    subscription = Subscription(
        plain,
        min(asked.qos, limits.maximum_qos),
        asked.no_local,
        asked.retain_as_published,
        identifier,
        allowed,
        publisher is not None,
        end is not None,
        tells_place,
    )
    if is_shared:
        return c.JoinShare(subscriber, written, subscription)
    if start is not None:
        place = parse_start(start, plain, broker.clock.now_us)
        if client.permit is None or client.permit.reach("replay", plain) != "none":
            # One that rules forbid whole may be granted all the same, and brings nothing.
            broker.event("replay.started", client, filter=plain, start=start)
        return c.Replay(subscriber, written, subscription, place)
    handling = asked.retain_handling
    retained = limits.retain_available and (handling == 0 or (handling == 1 and written not in known))
    return c.AddSubscription(subscriber, subscription, retained)


def unsubscribe(responder: RequestResponder, packet: p.Unsubscribe) -> None:
    """Take subscriptions away; UNSUBACK says for each whether there was one."""
    unsuback(responder, packet.packet_id, remove(responder.client, packet.filters))


def unsuback(responder: RequestResponder, packet_id: int, reasons: list[Reason]) -> None:
    answer = encode(p.Unsuback(packet_id, tuple(reasons)), responder.client.version)
    responder.promise(answer, barrier=False)


def remove(client: Client, filters: Iterable[str]) -> list[Reason]:
    assert client.session is not None
    subscriber = client.session.subscriber
    reasons = []
    known = client.session.asked
    client.broker.delivery.settle()
    for asked in filters:
        reasons.append(Reason.SUCCESS if asked in known else Reason.NO_SUBSCRIPTION_EXISTED)
        if asked in known:
            client.broker.journal.unsubscribed(client.session, asked)
        known.discard(asked)
        client.broker.delivery.commands.put(c.RemoveSubscription(subscriber, asked))
    return reasons
