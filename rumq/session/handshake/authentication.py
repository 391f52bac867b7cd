"""Between CONNECT and CONNACK: the client shows who it is, which may take a thread or several AUTH packets.

MQTT 5.0, 3.15 and 4.12. Until it is in, nothing it sends is taken but what it was asked for.
Knows no method of authentication."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rumq.auth.authenticator import outcome
from rumq.auth.errors import SERVER_BUSY, SERVER_UNAVAILABLE, Busy, Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.reasons import Reason

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


def credentials(link: Link, connect: p.Connect) -> Credentials:
    given = connect.properties
    return Credentials(
        link.claimed, connect.username, connect.password, link.certificate, link.address, link.house.monotonic,
        link.house.now_us, given.get("authentication_method"), given.get("authentication_data", b""),
    )  # fmt: skip


class Authentication:
    """One attempt of one client to come in."""

    __slots__ = ("_connect", "_link", "_method", "_steps", "asked")

    def __init__(self, link: Link, connect: p.Connect) -> None:
        shown = credentials(link, connect)
        self._link = link
        self._connect = connect
        self._method = shown.method
        self._steps: Steps = link.entrance.authenticator.authenticate(shown)
        self.asked = False  # the client's next packet is to be AUTH

    def go(self, answer: object = None) -> None:
        """Take the next step. raises: MqttFault as the rest of CONNECT does"""
        link = self._link
        try:
            step = outcome(self._steps, answer)
        except Denied as denied:
            self._denied(denied)
            return
        if isinstance(step, Work):
            link.transport.pause_reading()
            link.house.owes(link, True)
            if not link.house.check(link, step, self._checked):
                self._denied(Denied(SERVER_BUSY, "too many clients wait to be checked"))
        elif isinstance(step, Challenge):
            self.asked = True
            link.house.owes(link, False)
            link.send(p.Auth(Reason.CONTINUE_AUTHENTICATION, self._properties(step.data)))
        else:
            assert isinstance(step, Identity)
            from rumq.session.handshake.connect import enter  # which imports this module

            link.entering = None
            enter(link, self._connect, step, self._properties(step.last_data))
            link.transport.resume_reading()

    def answered(self, packet: p.Packet) -> None:
        """The client sent a packet while it was asked for AUTH."""
        if isinstance(packet, p.Disconnect):
            self._link.end(with_will=False)
            return
        if not isinstance(packet, p.Auth):
            raise ProtocolViolation(f"{type(packet).__name__.upper()} in the middle of authentication")
        if packet.properties.get("authentication_method") != self._method:
            raise ProtocolViolation("AUTH with another authentication method than CONNECT")
        if packet.reason != Reason.CONTINUE_AUTHENTICATION:
            raise ProtocolViolation(f"AUTH 0x{packet.reason:02X} in the middle of authentication")
        self.asked = False
        self.go(packet.properties.get("authentication_data", b""))

    def close(self) -> None:
        self._steps.close()

    def _properties(self, data: bytes) -> Any:
        if self._method is None:
            return {}
        return {"authentication_method": self._method} | ({"authentication_data": data} if data else {})

    def _checked(self, result: object, fault: BaseException | None) -> None:
        """A thread has done the work."""
        link = self._link
        if link.closed:
            return
        if isinstance(fault, Busy):
            self._denied(Denied(SERVER_BUSY, "too many clients wait to be checked"))
            return
        if fault is not None:
            link.house.event("auth.failed", link, why=type(fault).__name__)
            self._denied(Denied(SERVER_UNAVAILABLE, "who the client is could not be checked"))
            return
        try:
            self.go(result)
        except MqttFault as refused:
            link.refuse(refused)

    def _denied(self, denied: Denied) -> None:
        link = self._link
        reason = Reason(denied.reason)
        if reason == Reason.BAD_USER_NAME_OR_PASSWORD and not link.entrance.exact_refusals:
            reason = Reason.NOT_AUTHORIZED
        fault = MqttFault(denied.why, reason)
        answer = partial(link.refuse, fault, private=True)
        if denied.guess:
            link.transport.pause_reading()
            link.house.owes(link, True)
            link.house.hold_back(link, answer)
        else:
            answer()
