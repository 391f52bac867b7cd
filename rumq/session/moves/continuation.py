"""A connection that comes from the leader before goes on: the same session, without CONNECT and without CONNACK.

Nothing is sent again: what was on its way is in the socket, or comes with the connection. MQTT 5.0, 4.4: messages are
sent again only when a client connects."""

from __future__ import annotations

from functools import partial

from router.commands import Attach
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import Client
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from rumq.session.handshake.connect import wire_of
from rumq.session.handshake.reauthentication import Reauthentication, watch_expiry
from rumq.session.moves.moved_client import MovedClient, shape_for
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected


def continue_client(client: Client, moved: MovedClient) -> Connected:
    """Tie a connection to the session that it had. raises: MqttFault where it may not go on here"""
    broker, policy, identity = client.broker, client.policy, moved.identity
    client.version, client.keep_alive = moved.version, moved.keep_alive
    client.packet_bytes_max, client.wants_reason_strings = moved.packet_bytes_max, moved.wants_reason_strings
    client.claimed_client_id, client.claimed_user = moved.claimed_client_id, moved.claimed_user
    client.authentication_method, client.certificate = moved.authentication_method, moved.certificate
    client.identity = identity
    client.connected_at = broker.clock.monotonic - moved.connected_seconds
    if (refusal := broker.logins.login_refusal(client, moved.client_id, identity.user)) is not None:
        raise refusal
    if not broker.logins.has_room(client):
        raise MqttFault("as many clients as may be connected are", Reason.QUOTA_EXCEEDED)
    shape = shape_for(moved)
    session = broker.registry.maybe_rejoin(moved.client_id, moved.owner, moved.number, shape, moved.alias_out > 0)
    if session is None:
        raise MqttFault("its session has another connection, or has ended", Reason.SESSION_TAKEN_OVER)
    if not policy.quotas.enter(identity.quota_holder):
        raise MqttFault(f"user {identity.user!r} has too many connections", Reason.QUOTA_EXCEEDED)
    replaying = policy.quotas.replaying.buckets(identity.quota_holder, broker.clock.monotonic)
    authorization.find_permit(client, session.client_id)
    broker.journal.stays(session)
    wire = wire_of(client, session)
    wire.others = 0
    if moved.aliases:
        wire.aliases = [None] * (wire.alias_max + 1)
        for number, topic in moved.aliases:
            if number <= wire.alias_max:
                wire.aliases[number] = topic
    connected = Connected(client, session, wire, moved.window_limit)
    connected.buckets = policy.quotas.sending.buckets(identity.quota_holder, broker.clock.monotonic)
    watch_expiry(connected)
    authorization.recheck_subscriptions(client)
    broker.logins.logged_in(client)
    if client.authentication_method is not None:
        connected.reauthentication = Reauthentication(connected)
    if replaying:
        refresh = partial(broker.delivery.refresh, connected)
        connected.activate()
        connected.flow.meter = ReplayThrottle(replaying, lambda: broker.clock.monotonic, broker.later, refresh)
    if moved.unsent:
        connected.transport.write(moved.unsent)
    if client.keep_alive:
        broker.keep_alive_monitor.add(connected, broker.clock.monotonic + 1.5 * client.keep_alive)
    if connected.is_active:
        broker.delivery.commands.put(Attach(session.subscriber, connected.flow))
    return connected
