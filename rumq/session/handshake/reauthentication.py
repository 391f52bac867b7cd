"""A client that is in shows once more who it is, while everything else goes on. MQTT 5.0, 4.12.1.

Knows no method of authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.auth.authenticator import outcome
from rumq.auth.errors import SERVER_BUSY, Busy, Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.reasons import Reason
from rumq.session.protocol import authorization
from rumq.session.state.wills import author_of

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


class Reauthentication:
    """The re-authentication of one connection."""

    __slots__ = ("_link", "_steps")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._steps: Steps | None = None

    def take(self, packet: p.Auth) -> None:
        """An AUTH packet came. raises: MqttFault"""
        link, method = self._link, self._link.method
        if method is None:
            raise ProtocolViolation("AUTH on a connection that began without an authentication method")
        if packet.properties.get("authentication_method") != method:
            raise ProtocolViolation("AUTH with another authentication method than CONNECT")
        data = packet.properties.get("authentication_data", b"")
        if packet.reason == Reason.RE_AUTHENTICATE:
            if self._steps is not None:
                raise ProtocolViolation("AUTH 0x19 in the middle of authentication")
            assert link.session is not None
            shown = Credentials(
                link.session.client_id, None, None, link.certificate, link.address, link.house.monotonic,
                link.house.now_us, method, data,
            )  # fmt: skip
            self._steps = link.entrance.authenticator.authenticate(shown)
            self._go(None)
        elif packet.reason == Reason.CONTINUE_AUTHENTICATION and self._steps is not None:
            self._go(data)
        else:
            raise ProtocolViolation(f"AUTH 0x{packet.reason:02X} that nothing was asked for")

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def _go(self, answer: object) -> None:
        link, steps = self._link, self._steps
        assert steps is not None and link.who is not None
        try:
            step = outcome(steps, answer)
            if isinstance(step, Work):
                if not link.house.check(link, step, self._checked):
                    raise Denied(SERVER_BUSY, "too many clients wait to be checked")
            elif isinstance(step, Challenge):
                self._send(Reason.CONTINUE_AUTHENTICATION, step.data)
            else:
                assert isinstance(step, Identity)
                self._steps = None
                if step.user != link.who.user:
                    raise Denied(
                        int(Reason.NOT_AUTHORIZED), f"came as {link.who.user!r}, now is {step.user!r}"
                    )
                self._proved(step)
        except Denied as denied:
            self.close()
            raise MqttFault(denied.why, Reason.NOT_AUTHORIZED) from None

    def _proved(self, who: Identity) -> None:
        link = self._link
        link.who = who
        link.note_expiry()
        assert link.session is not None
        authorization.find(link, link.session.client_id)
        authorization.hold(link)
        if link.session.author is not None:
            link.session.author = author_of(who, link.entrance.name)
            link.house.journal.will(link.session)
        self._send(Reason.SUCCESS, who.last_data)
        link.house.event("client.proved", link, user=who.user, method=who.method)

    def _send(self, reason: Reason, data: bytes) -> None:
        properties: dict[str, object] = {"authentication_method": self._link.method}
        if data:
            properties["authentication_data"] = data
        self._link.send(p.Auth(reason, properties))  # type: ignore[arg-type]

    def _checked(self, result: object, fault: BaseException | None) -> None:
        link = self._link
        if link.closed or self._steps is None:
            return
        try:
            if isinstance(fault, Busy):
                raise MqttFault("too many clients wait to be checked", Reason.SERVER_BUSY)
            if fault is not None:
                raise MqttFault("who the client is could not be checked", Reason.NOT_AUTHORIZED)
            self._go(result)
        except MqttFault as refused:
            link.refuse(refused)
