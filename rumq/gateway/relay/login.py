"""CONNECT of a client of the relay: cut out of its bytes, its password taken as a token, written anew for the broker.

Everything else of it stays as the client said it. Knows no socket, no clock. MQTT 5.0, 3.1; MQTT 3.1.1, 3.1."""

from __future__ import annotations

import dataclasses

from rumq.gateway.access.tokens import Token
from rumq.mqtt import packets as p
from rumq.mqtt.connect import decode_connect, version_of_connect
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, PacketTooLarge, UnsupportedVersion
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason, maybe_connack_return_code

CONNECT = PacketType.CONNECT


class LoginRefused(Exception):
    """answer: bytes for the client before the end, perhaps none; why: for an event"""

    def __init__(self, answer: bytes, why: str) -> None:
        super().__init__(why)
        self.answer, self.why = answer, why


class Login:
    """Collects a client's bytes up to the end of CONNECT. bytes_max: of that packet; rest: what is behind it"""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self.rest = b""

    def receive(self, data: bytes) -> p.Connect | None:
        """The packet, once it is whole. raises: LoginRefused"""
        self._buffer += data
        buffer = self._buffer
        if buffer and buffer[0] >> 4 != CONNECT:
            raise LoginRefused(b"", "the first packet is no CONNECT")
        version = 0
        try:
            found = frame_at(buffer, 0, len(buffer))
            if found is None:
                return None
            head, size = found
            if head + size > self._bytes_max:
                raise PacketTooLarge(f"a CONNECT of {head + size} bytes, the limit is {self._bytes_max}")
            if len(buffer) < head + size:
                return None
            body = bytes(buffer[head : head + size])
            self.rest = bytes(buffer[head + size :])
            version = version_of_connect(body)
            connect = decode_connect(buffer[0], body)
            if "authentication_method" in connect.properties:
                raise MqttFault("give the token as the password", Reason.BAD_AUTHENTICATION_METHOD)
        except UnsupportedVersion as fault:
            version = 5 if b"MQTT" in buffer[:8] and len(buffer) > 8 and buffer[8] >= 5 else 4
            raise refusal(version, fault.reason, str(fault)) from None
        except MqttFault as fault:
            raise refusal(version, fault.reason, fault.message) from None
        return connect


def secret_of(connect: p.Connect) -> str:
    """The secret of a token, which is the password; empty for none."""
    return (connect.password or b"").decode("utf-8", "replace")


def check_roles(connect: p.Connect, token: Token) -> None:
    """raises: LoginRefused"""
    why = ""
    if not (token.may("read") or token.may("publish")):
        why = f"token {token.name} may neither read nor publish"
    elif connect.will is not None and not token.may("publish"):
        why = f"token {token.name} may not publish, so it may have no will"
    if why:
        raise refusal(connect.version, Reason.NOT_AUTHORIZED, why)


def for_broker(connect: p.Connect, user: str) -> bytes:
    """The packet with the token's user, and without the secret. user: "" for nobody in particular"""
    return encode(dataclasses.replace(connect, username=user or None, password=None), connect.version)


def refusal(version: int, reason: Reason, why: str) -> LoginRefused:
    """With the CONNACK that the version has for it. version: 0 while it is not known"""
    answer = b""
    if version == 5:
        answer = encode(p.Connack(reason=reason, properties=Properties(reason_string=why[:200])), 5)
    elif version and maybe_connack_return_code(reason) is not None:
        answer = encode(p.Connack(reason=reason), version)
    return LoginRefused(answer, why)


def farewell(version: int, reason: Reason, why: str) -> bytes:
    """DISCONNECT, of which only MQTT 5 has one of the server."""
    if version != 5:
        return b""
    return encode(p.Disconnect(reason, Properties(reason_string=why[:200])), 5)
