"""CONNECT: under which conditions a client comes in, and with which session. MQTT 5.0, 3.1 and 3.2; 3.1.1 likewise."""
# compiled: warm

from __future__ import annotations

from functools import partial
from typing import Any

from rumq.auth.identity import BROKERS_OWN, Identity
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, UnsupportedVersion
from rumq.mqtt.kernels.wire_state import Wire, open_tags
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from rumq.session.connection.client_state import Client
from rumq.session.flow_control.limits import EXPIRES_NEVER, Limits
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from rumq.session.handshake.reauthentication import Reauthentication, watch_expiry
from rumq.session.journal.recorder import tag_of
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.state.persistent_sessions import holder_of
from rumq.session.state.session import Session, shape_of
from rumq.session.state.session_owner import Owner, expiry_seconds_of, owner_of
from rumq.session.state.wills import author_of

DURABILITY = "rumq-durability"  # user property of CONNECT, which asks, and of CONNACK, which answers
BROKER_ID = "rumq-broker"  # likewise: which broker this is, for bridges
EXACTLY_ONCE = "rumq-exactly-once"  # likewise: QoS 1 is carried as QoS 2, both ways, for bridges between rumqs
HOLD = "rumq-hold"  # of CONNECT: no message is sent on this connection, for bridges while they subscribe
ANCHOR = "$anchor/"  # begin of client ids: `rumq.queues.link.anchors`
CONTROL = "$CONTROL/"  # of mosquitto's plugins; a bridge would carry the order to one
# CONNACKs that say nothing else, before MQTT 5: by whether the session was there, which MQTT 3.1 has no word for.
ACCEPTED = encode(p.Connack(False), 4), encode(p.Connack(True), 4)
PACKET_BYTES_MAX = 268_435_460  # of MQTT: a limit as high need not be told


def accept(client: Client, connect: p.Connect) -> None:
    """Take over what CONNECT says of the client. raises: MqttFault for what cannot be served"""
    given = connect.properties
    client.packet_bytes_max = given.get("maximum_packet_size", 0)
    client.wants_reason_strings = bool(given.get("request_problem_information", False))
    check(client, connect)
    client.claimed_user = connect.username or ""
    client.authentication_method = given.get("authentication_method")


def enter(client: Client, connect: p.Connect, identity: Identity, told_of_method: Properties) -> Connected:
    """The client is authenticated: take over or make its session, and answer. raises: MqttFault

    told_of_method: what CONNACK says of enhanced authentication"""
    broker, policy = client.broker, client.policy
    client.identity = identity
    client_id = client.claimed_client_id or broker.logins.assigned_client_id(policy.assigned_prefix)
    owner = owner_of(identity, policy.mount_point)
    expiry, told = expiry_of(connect, client.limits, owner)
    admit(client, client_id, owner, expiry)
    replaying = policy.quotas.replaying.buckets(identity.quota_holder, broker.clock.monotonic)
    sending = policy.quotas.sending.buckets(identity.quota_holder, broker.clock.monotonic)
    session, present = open_session(client, connect, client_id, owner, expiry)
    properties = connack_properties(client, connect, session, told, told_of_method)
    authorization.find_permit(client, client_id)
    session.will = authorization.permitted_will(client, connect)
    session.author = None
    if session.will is not None:
        session.author = author_of(identity, policy.name, client.address)
    broker.journal.connected(session)
    window_limit = window_limit_of(client, connect)
    connected = Connected(client, session, wire_of(client, session), window_limit)
    connected.buckets = sending
    broker.shard_totals.connections += 1
    watch_expiry(connected)
    authorization.recheck_subscriptions(client)
    broker.logins.logged_in(client)
    if client.authentication_method is not None:
        connected.reauthentication = Reauthentication(connected)
    if replaying:
        refresh = partial(broker.delivery.refresh, connected)
        connected.activate()
        connected.flow.meter = ReplayThrottle(replaying, lambda: broker.clock.monotonic, broker.later, refresh)
    if connect.version < 5:
        connected.promise(ACCEPTED[present and connect.version > 3], barrier=True)
    else:
        answer(connected, p.Connack(present, Reason.SUCCESS, properties))
    if client.closed:
        return connected
    if client.keep_alive:
        broker.keep_alive_monitor.add(connected, broker.clock.monotonic + 1.5 * client.keep_alive)
    broker.event(
        "client.connected",
        client,
        version=connect.version,
        resumed=present,
        keep_alive_seconds=connect.keep_alive,
        user=identity.user,
        method=identity.method,
    )
    missed, session.missed = session.missed, ()
    for gap in missed:
        broker.event("log.gap", client, **gap)
    if connect.properties and HOLD in asked_of(connect):
        connected.activate()
        connected.deliveries.withheld = True
    if connected.is_active:
        connected.deliveries.start()
    return connected


def admit(client: Client, client_id: str, owner: Owner, expiry_seconds: int) -> None:
    """Hold the client to limits and quotas, and end the connection that its session has. owner: whose session it is

    raises: MqttFault"""
    broker, policy, identity = client.broker, client.policy, client.identity
    assert identity is not None
    if policy.user_as_client_id and (identity.user is None or client_id != identity.user):
        raise MqttFault("the client id is the user name here, and it has none", Reason.NOT_AUTHORIZED)
    if identity.client_id is not None and client_id != identity.client_id:
        raise MqttFault(f"it may come as {identity.client_id!r} alone", Reason.NOT_AUTHORIZED)
    if (refusal := broker.logins.login_refusal(client, client_id, identity.user)) is not None:
        raise refusal
    old = broker.registry.find(client_id, owner)
    if (old is None or old.link is None) and not broker.logins.has_room(client):
        raise MqttFault("as many clients as may be connected are", Reason.QUOTA_EXCEEDED)
    if expiry_seconds and (old is None or old.holder is None):
        holder = holder_of(identity.user, client.address)
        own_max = policy.quotas.sessions_max if identity.user is not None else 0
        if why := broker.registry.persistent.refusal(holder, client.limits.sessions_max, own_max):
            raise MqttFault(why, Reason.QUOTA_EXCEEDED)
    if old is not None and isinstance(old.link, Connected):
        broker.event("client.taken_over", old.link.client, by=client.transport.peer)
        old.link.dismiss(Reason.SESSION_TAKEN_OVER, "another client connected with this client id")
    if not policy.quotas.enter(identity.quota_holder):
        raise MqttFault(f"user {identity.user!r} has too many connections", Reason.QUOTA_EXCEEDED)


def open_session(
    client: Client, connect: p.Connect, client_id: str, owner: Owner, expiry_seconds: int
) -> tuple[Session, bool]:
    """(the session, whether it was there before)"""
    registry, wanted = client.broker.registry, connect.properties.get("topic_alias_maximum", 0)
    alias_out = min(wanted, client.limits.topic_alias_out_maximum)
    raises_qos = is_exactly_once(connect, client.limits)
    shape = shape_of(5 if connect.version == 5 else 4, client.packet_bytes_max, alias_out, raises_qos)
    session, present = registry.open(
        client_id, shape, personal=alias_out > 0, clean_start=connect.clean_start, owner=owner
    )
    session.version = connect.version
    session.expiry_seconds = expiry_seconds
    if expiry_seconds or session.asked:
        holder = holder_of(client.user, client.address)
        if expiry_seconds and session.holder != holder:
            registry.persist(session, holder)
        registry.count_filters(session, holder)
    session.will_at = None
    return session, present


def wire_of(client: Client, session: Session) -> Wire:
    """What the kernel is to remember of the connection."""
    limits = client.limits
    wire = Wire(client.version == 5, limits.packet_bytes_max, limits.receive_maximum, limits.topic_alias_maximum)
    wire.others = 1  # CONNECT
    wire.qos_max = limits.maximum_qos
    wire.retain_available = limits.retain_available
    wire.restores_qos = session.raises_qos
    wire.publishers = session.publishers
    wire.qos2_open = session.qos2_open
    wire.session_tag = tag_of(session.number)
    wire.unacknowledged = len(open_tags(wire)) if wire.qos2_open is not None else 0
    if session.durable:
        wire.journal_part = client.broker.acks.journal_bit.bit_length() - 1
    wire.undecided = client.broker.publishing.undecided.concerns(session)
    return wire


def connack_properties(
    client: Client, connect: p.Connect, session: Session, told: Properties, told_of_method: Properties
) -> Properties:
    """What CONNACK says, and the keep alive that follows from it. MQTT 5.0, 3.2.2.3"""
    limits, properties = client.limits, told
    client.keep_alive = float(connect.keep_alive)
    if connect.version != 5:
        return properties
    if limits.topic_alias_maximum:
        properties["topic_alias_maximum"] = limits.topic_alias_maximum
    if not client.claimed_client_id:
        properties["assigned_client_identifier"] = session.client_id
    if is_too_long(connect.keep_alive, limits):
        properties["server_keep_alive"] = limits.keep_alive_seconds_max
        client.keep_alive = float(limits.keep_alive_seconds_max)
    properties = conditions(limits, {**properties, **told_of_method})
    if asked := answers_asked_for(connect, limits):
        properties["user_properties"] = asked
    if session.missed:
        lost = [("rumq-lost", lost_text(gap)) for gap in session.missed]
        properties["user_properties"] = [*properties.get("user_properties", ()), *lost]
    return properties


def is_too_long(keep_alive: int, limits: Limits) -> bool:
    """keep_alive: seconds; 0: for ever"""
    bound = limits.keep_alive_seconds_max
    return bound < 65535 and not 0 < keep_alive <= bound


def lost_text(gap: dict[str, Any]) -> str:
    """What a session lost while its client was away, for CONNACK: place in the log, records that it lost of it, why."""
    where = f"{gap['stream']}/g{gap['generation']}/p{gap['partition']}"
    return f"{where} {gap['first_lsn']}-{gap['next_lsn'] - 1} {gap['records']} {gap['why']}"


def check(client: Client, connect: p.Connect) -> None:
    """Refuse what cannot be served."""
    limits, policy, client_id = client.limits, client.policy, client.claimed_client_id
    if connect.version not in policy.versions:
        raise UnsupportedVersion("a version of MQTT that is not accepted here", min(connect.version, 4))
    if limits.keep_alive_refused and connect.version != 5 and is_too_long(connect.keep_alive, limits):
        raise MqttFault(
            f"a keep-alive of {connect.keep_alive} s, {limits.keep_alive_seconds_max} s at most are accepted",
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
        )
    if not client_id and not policy.user_as_client_id:
        if connect.version == 3 or (connect.version == 4 and not connect.clean_start):
            raise MqttFault("an empty client id without a clean session", Reason.CLIENT_IDENTIFIER_NOT_VALID)
        if not policy.empty_client_id:
            raise MqttFault("an empty client id, and none is given here", Reason.CLIENT_IDENTIFIER_NOT_VALID)
    if len(client_id.encode()) > limits.client_id_bytes_max:
        raise MqttFault(
            f"a client id of more than {limits.client_id_bytes_max} bytes", Reason.CLIENT_IDENTIFIER_NOT_VALID
        )
    if client_id and policy.client_id_prefixes and not client_id.startswith(policy.client_id_prefixes):
        raise MqttFault("a client id that begins with none of the prefixes allowed here", Reason.NOT_AUTHORIZED)
    if connect.will is not None:
        check_topic_name(connect.will.topic, bytes_max=limits.topic_bytes_max, levels_max=limits.topic_levels_max)
        if connect.will.topic.startswith(CONTROL):
            raise MqttFault(f"a will for {CONTROL}, where brokers take orders", Reason.NOT_AUTHORIZED)
        if connect.will.qos > limits.maximum_qos:
            raise MqttFault(f"a will of QoS {connect.will.qos}", Reason.QOS_NOT_SUPPORTED)
        if connect.will.retain and not limits.retain_available:
            raise MqttFault("a retained will", Reason.RETAIN_NOT_SUPPORTED)


def window_limit_of(client: Client, connect: p.Connect) -> int:
    """How many messages may be in flight. An anchor of queues, which nobody reads from, is given none; engines that
    serve many consumers on one connection as many as they ask for."""
    wanted = connect.properties.get("receive_maximum", 65535)
    if client.identity is None or client.identity.method != BROKERS_OWN:
        return min(client.limits.inflight_max, wanted)
    return 0 if client.claimed_client_id.startswith(ANCHOR) else wanted


def expiry_of(connect: p.Connect, limits: Limits, owner: Owner | None = None) -> tuple[int, Properties]:
    """How many seconds the session outlives its connection, and what CONNACK must say of it."""
    told: Properties = {}
    if connect.version == 5:
        wanted = connect.properties.get("session_expiry_interval", 0)
    else:
        wanted = 0 if connect.clean_start else EXPIRES_NEVER
    expiry = expiry_seconds_of(wanted, owner, limits)
    if connect.version == 5 and expiry != wanted:
        told["session_expiry_interval"] = expiry
    return expiry, told


def conditions(limits: Limits, told: Properties) -> Properties:
    """What this broker allows, where it differs from what the standard assumes. MQTT 5.0, 3.2.2.3."""
    properties: Properties = {**told}
    if not limits.retain_available:
        properties["retain_available"] = False
    if limits.packet_bytes_max < PACKET_BYTES_MAX:
        properties["maximum_packet_size"] = limits.packet_bytes_max
    if limits.receive_maximum < 65535:
        properties["receive_maximum"] = limits.receive_maximum
    if limits.maximum_qos < 2:
        properties["maximum_qos"] = limits.maximum_qos
    if not limits.wildcard_available:
        properties["wildcard_subscription_available"] = False
    if not limits.subscription_identifiers_available:
        properties["subscription_identifier_available"] = False
    if not limits.shared_available:
        properties["shared_subscription_available"] = False
    return properties


def answers_asked_for(connect: p.Connect, limits: Limits) -> list[tuple[str, str]]:
    """Nobody is told unasked: some clients cannot parse a CONNACK with user properties."""
    asked = asked_of(connect)
    found: list[tuple[str, str]] = []
    if DURABILITY in asked:
        found += [(DURABILITY if name == "main" else f"{DURABILITY}/{name}", each) for name, each in limits.durability]
    if BROKER_ID in asked and limits.broker_id:
        found.append((BROKER_ID, limits.broker_id))
    if is_exactly_once(connect, limits):
        found.append((EXACTLY_ONCE, "yes"))
    return found


def is_exactly_once(connect: p.Connect, limits: Limits) -> bool:
    """Whether the client asks for messages of QoS 1 to be carried as QoS 2, and they can be."""
    return bool(connect.properties) and limits.maximum_qos == 2 and EXACTLY_ONCE in asked_of(connect)


def asked_of(connect: p.Connect) -> set[str]:
    """Names of the user properties of CONNECT."""
    return {name for name, _ in connect.properties.get("user_properties", ())}


def answer(connected: Connected, connack: p.Connack) -> None:
    """Send CONNACK of MQTT 5; user properties give way to the client's packet limit. MQTT-3.2.2-20."""
    client = connected.client
    if client.packet_bytes_max and len(encode(connack, client.version)) > client.packet_bytes_max:
        bare: Properties = {**connack.properties}
        bare.pop("user_properties", None)
        connack = p.Connack(connack.session_present, connack.reason, bare)
        if len(encode(connack, client.version)) > client.packet_bytes_max:
            why = "its maximum packet size holds no CONNACK"
            client.broker.event("client.refused", client, reason=0x95, why=why)
            connected.end(with_will=False)
            return
    connected.promise(encode(connack, client.version), barrier=True)
