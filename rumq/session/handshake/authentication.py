"""Between CONNECT and CONNACK: find out who the client is, which may take a thread or several AUTH packets.

MQTT 5.0, 3.15 and 4.12. Methods are in `rumq.auth`."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.errors import SERVER_BUSY, SERVER_UNAVAILABLE, Busy, Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.session.connection import packet_order
from rumq.session.connection.client_state import Client, Responder, run_confined
from rumq.session.connection.packet_order import State


def credentials_of(client: Client, connect: p.Connect) -> Credentials:
    given = connect.properties
    return Credentials(
        client.claimed_client_id, connect.username, connect.password, client.certificate, client.address,
        client.broker.clock.monotonic, client.broker.clock.now_us, given.get("authentication_method"),
        given.get("authentication_data", b""),
    )  # fmt: skip


class ConnectResponder(Responder, Protocol):
    def refuse_privately(self, fault: MqttFault) -> None:
        """As `refuse`; the operator alone is told why."""


class Authentication:
    """Of one CONNECT. state: VERIFYING or CHALLENGED"""

    __slots__ = ("_authenticated", "_method", "_responder", "_steps", "state")

    def __init__(
        self, responder: ConnectResponder, connect: p.Connect, authenticated: Callable[[Identity, Properties], None]
    ) -> None:
        """authenticated: takes who the client is, and what CONNACK says of enhanced authentication"""
        shown = credentials_of(responder.client, connect)
        self._responder = responder
        self._authenticated = authenticated
        self._method = shown.method
        self._steps: Steps = responder.client.policy.authenticator.authenticate(shown)
        self.state = State.VERIFYING

    def step(self, answer: object = None) -> None:
        """Go on with what the last step asked for. raises: MqttFault"""
        client = self._responder.client
        try:
            step = outcome(self._steps, answer)
        except Denied as denied:
            self._refuse(denied)
            return
        if isinstance(step, Work):
            self._wait()
            if not client.broker.logins.check(client, step, self._verified):
                self._refuse(Denied(SERVER_BUSY, "too many clients wait to be checked"))
        elif isinstance(step, Challenge):
            self.state = State.CHALLENGED
            client.broker.logins.set_waiting(client, False)
            self._responder.send(p.Auth(Reason.CONTINUE_AUTHENTICATION, self._properties(step.data)))
        else:
            assert isinstance(step, Identity)
            self._authenticated(step, self._properties(step.last_data))
            client.transport.resume_reading()

    def receive(self, packet: p.Packet) -> None:
        """Take what came while the client was asked for AUTH. raises: MqttFault"""
        packet_order.check(State.CHALLENGED, PacketType[type(packet).__name__.upper()])
        if isinstance(packet, p.Disconnect):
            self._responder.end(with_will=False)
            return
        assert isinstance(packet, p.Auth)
        if packet.properties.get("authentication_method") != self._method:
            raise ProtocolViolation("AUTH with another authentication method than CONNECT")
        packet_order.check_auth(State.CHALLENGED, packet.reason)
        self.state = State.VERIFYING
        self.step(packet.properties.get("authentication_data", b""))

    def close(self) -> None:
        self._steps.close()

    def _properties(self, data: bytes) -> Properties:
        if self._method is None:
            return {}
        if not data:
            return {"authentication_method": self._method}
        return {"authentication_method": self._method, "authentication_data": data}

    def _verified(self, result: object, fault: BaseException | None) -> None:
        """A thread has done the work."""
        client = self._responder.client
        if client.closed:
            return
        if isinstance(fault, Busy):
            self._refuse(Denied(SERVER_BUSY, "too many clients wait to be checked"))
            return
        if fault is not None:
            client.broker.event("auth.failed", client, why=type(fault).__name__)
            self._refuse(Denied(SERVER_UNAVAILABLE, "who the client is could not be checked"))
            return
        try:
            self.step(result)
        except MqttFault as refused:
            self._responder.refuse(refused)

    def _wait(self) -> None:
        """Read nothing: the client waits for the broker."""
        client = self._responder.client
        client.transport.pause_reading()
        client.broker.logins.set_waiting(client, True)

    def _refuse(self, denied: Denied) -> None:
        client, reason = self._responder.client, Reason(denied.reason)
        if reason == Reason.BAD_USER_NAME_OR_PASSWORD and not client.policy.exact_refusals:
            reason = Reason.NOT_AUTHORIZED
        answer = partial(self._responder.refuse_privately, MqttFault(denied.why, reason))
        if denied.guess:
            self._wait()
            client.broker.logins.delay_refusal(client, partial(run_confined, self._responder, answer))
        else:
            answer()
