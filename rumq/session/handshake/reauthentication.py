"""A connected client authenticates again, while everything else goes on. MQTT 5.0, 4.12.1."""
# compiled: warm

from __future__ import annotations

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.errors import SERVER_BUSY, Busy, Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.session.connection import packet_order
from rumq.session.connection.packet_order import State
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.state.wills import author_of

EXPIRY_CHECK_SECONDS = 60.0


def watch_expiry(connected: Connected) -> None:
    """Have the connection end when its authentication expires."""
    client, broker = connected.client, connected.broker
    assert client.identity is not None
    client.expires_at = None
    if client.identity.expires_us is not None:
        client.expires_at = broker.clock.monotonic + (client.identity.expires_us - broker.clock.now_us) / 1_000_000
        check_at = min(client.expires_at, broker.clock.monotonic + EXPIRY_CHECK_SECONDS)
        broker.keep_alive_monitor.add(connected, check_at)


class Reauthentication:
    """Of one connection with a method of authentication."""

    __slots__ = ("_connected", "_steps", "state")

    def __init__(self, connected: Connected) -> None:
        self._connected = connected
        self._steps: Steps | None = None
        self.state = State.CONNECTED_BY_METHOD

    def receive(self, packet: p.Auth) -> None:
        """Take an AUTH. raises: MqttFault"""
        client = self._connected.client
        method = client.authentication_method
        if packet.properties.get("authentication_method") != method:
            raise ProtocolViolation("AUTH with another authentication method than CONNECT")
        packet_order.check_auth(self.state, packet.reason)
        data = packet.properties.get("authentication_data", b"")
        if packet.reason == Reason.CONTINUE_AUTHENTICATION:
            self._step(data)
            return
        shown = Credentials(
            self._connected.client_id, None, None, client.certificate, client.address, client.broker.clock.monotonic,
            client.broker.clock.now_us, method, data,
        )  # fmt: skip
        self._steps = client.policy.authenticator.authenticate(shown)
        self._step(None)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def _step(self, answer: object) -> None:
        client, steps = self._connected.client, self._steps
        assert steps is not None and client.identity is not None
        self.state = State.REVERIFYING
        try:
            step = outcome(steps, answer)
            if isinstance(step, Work):
                if not client.broker.logins.check(client, step, self._verified):
                    raise Denied(SERVER_BUSY, "too many clients wait to be checked")
            elif isinstance(step, Challenge):
                self.state = State.RECHALLENGED
                self._send(Reason.CONTINUE_AUTHENTICATION, step.data)
            else:
                assert isinstance(step, Identity)
                self._steps = None
                self.state = State.CONNECTED_BY_METHOD
                before = client.identity.user
                if step.user != before:
                    raise Denied(int(Reason.NOT_AUTHORIZED), f"came as {before!r}, now is {step.user!r}")
                self._authenticated(step)
        except Denied as denied:
            self.close()
            raise MqttFault(denied.why, Reason.NOT_AUTHORIZED) from None

    def _authenticated(self, identity: Identity) -> None:
        client, session = self._connected.client, self._connected.session
        client.identity = identity
        watch_expiry(self._connected)
        authorization.find_permit(client, session.client_id)
        authorization.recheck_subscriptions(client)
        if session.author is not None:
            session.author = author_of(identity, client.policy.name, client.address)
            client.broker.journal.will(session)
        self._send(Reason.SUCCESS, identity.last_data)
        client.broker.event("client.proved", client, user=identity.user, method=identity.method)

    def _send(self, reason: Reason, data: bytes) -> None:
        method = self._connected.client.authentication_method
        assert method is not None
        properties: Properties = {"authentication_method": method}
        if data:
            properties["authentication_data"] = data
        self._connected.send(p.Auth(reason, properties))

    def _verified(self, result: object, fault: BaseException | None) -> None:
        """A thread has done the work."""
        if self._connected.client.closed or self._steps is None:
            return
        try:
            if isinstance(fault, Busy):
                raise MqttFault("too many clients wait to be checked", Reason.SERVER_BUSY)
            if fault is not None:
                raise MqttFault("who the client is could not be checked", Reason.NOT_AUTHORIZED)
            self._step(result)
        except MqttFault as refused:
            self._connected.refuse(refused)
