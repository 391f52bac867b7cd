"""One side of a bridge: a broker, and the session there. CONNECT, SUBSCRIBE, and the release of old packet ids.

MQTT 5.0, 3.1, 3.8 and 4.3.3; MQTT 3.1.1. Transport, TLS and the packets of logins are `rumq.client`'s."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import trio

from rumq.bridge.relay import PACKET_BYTES_MAX, TargetLimits, held_bytes
from rumq.bridge.side_stream import ANSWER_BYTES_MAX, SideStream, TooLong
from rumq.client.session.options import ConnectOptions, connect_packet
from rumq.client.session.packet_stream import OpenStream, failure_text
from rumq.errors import ConnectionLost, Refused
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Pubcomp,
    Publish,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

LOCAL, REMOTE = "local", "remote"
SIDES = (LOCAL, REMOTE)
OTHER = {LOCAL: REMOTE, REMOTE: LOCAL}
LOST = "rumq-lost"  # user property of CONNACK: what a rumq session lost to retention while we were away
BROKER_ID = "rumq-broker"  # user property of CONNECT, which asks, and of CONNACK, which answers
EXACTLY_ONCE = "rumq-exactly-once"  # likewise: messages of QoS 1 are carried as QoS 2, to it and from it
HOLD = "rumq-hold"  # user property of CONNECT: the session sends nothing on this connection
BROKER_ID_CHARACTERS_MAX = 64
LOST_MAX, LOST_CHARACTERS_MAX = 100, 200
KEPT_BYTES_MAX = 2**26  # of messages that come while ids are released, about
KEPT_QOS_0_BYTES_MAX = 2**20
REQUEST_ID = 65_535  # of SUBSCRIBE and UNSUBSCRIBE: brokers begin with 1
IDS_MAX = 65_535
RELEASED_AT_ONCE = 1_000
LEAVE_SECONDS_MAX = 1.0
FILTERS_MAX = 100  # of one SUBSCRIBE

Answer = TypeVar("Answer", Suback, Unsuback)
Request = Subscribe | Unsubscribe


AUTO = 0  # of `Side.version`: MQTT 5, or 3.1.1 where that is not taken
RECEIVE_MAXIMUM_311 = 20  # MQTT 3.1.1 does not say it, and mosquitto hangs up at more (`max_inflight_messages`)
BRIDGE_BIT = 0x80  # of CONNECT's protocol level: mosquitto does not send a bridge what came from it


@dataclass(frozen=True, slots=True)
class Side:
    """filters: subscribed here -> QoS; open_stream, options: how to connect, with a session that stays

    address: for people, and to tell brokers apart that say no id; version: 5, 4 (MQTT 3.1.1) or AUTO
    echoes: it would send back, without MQTT 5's no local, what the bridge published
    takes_5: it did before, so that a line which is cut before CONNACK says nothing of the version"""

    name: str
    open_stream: OpenStream
    options: ConnectOptions
    filters: dict[str, int]
    address: str = ""
    version: int = 5
    echoes: bool = False
    takes_5: bool = False


class VersionRefused(ConnectionLost):
    """A broker did not take the version of MQTT."""


class HungUp(VersionRefused):
    """It ended the connection before it answered: some do so that do not know the version."""


@dataclass(slots=True)
class SideConnection:
    stream: SideStream
    connack: Connack
    version: int = 5

    @property
    def broker_id(self) -> str:
        found = next(iter(self._told(BROKER_ID)), "")
        return found if len(found) <= BROKER_ID_CHARACTERS_MAX else ""  # it goes with each message

    @property
    def is_exactly_once(self) -> bool:
        """Whether the broker carries QoS 1 as QoS 2, as it was asked to."""
        return bool(self._told(EXACTLY_ONCE))

    @property
    def lost(self) -> list[str]:
        """Records that the session lost, as a rumq broker says: place, records, why. Of many the first ones."""
        return [each[:LOST_CHARACTERS_MAX] for each in self._told(LOST)[:LOST_MAX]]

    def _told(self, name: str) -> list[str]:
        return [value for each, value in self.connack.properties.get("user_properties", ()) if each == name]

    @property
    def receive_maximum(self) -> int:
        if self.version < 5:
            return RECEIVE_MAXIMUM_311
        return self.connack.properties.get("receive_maximum", 65_535)

    def as_target(self, *, was_lost: bool) -> TargetLimits:
        said = self.connack.properties
        return TargetLimits(
            self.broker_id, said.get("maximum_packet_size", PACKET_BYTES_MAX), said.get("maximum_qos", 2),
            bool(said.get("retain_available", True)), was_lost, self.version, self.receive_maximum,
        )  # fmt: skip


async def open_side(side: Side, receive_maximum: int, *asked: str) -> SideConnection:
    """receive_maximum: what the other side takes; asked: EXACTLY_ONCE, HOLD. raises: ConnectionLost, Refused"""
    options = replace(side.options, receive_maximum=receive_maximum)
    if asked:
        said = options.properties or Properties()
        more = [*said.get("user_properties", ()), *((name, "") for name in asked)]
        options = replace(options, properties=Properties({**said, "user_properties": more}))
    return await open_with(side, options, clean_start=False)


async def forget_session(side: Side) -> None:
    """End the session there. raises: ConnectionLost, Refused"""
    connection = await open_with(side, replace(side.options, session_expiry=0), clean_start=True)
    try:
        await leave(connection)
    finally:
        await connection.stream.close()


async def open_with(side: Side, options: ConnectOptions, *, clean_start: bool) -> SideConnection:
    """raises: ConnectionLost, Refused"""
    if side.version != AUTO:
        return await open_in(side, options, side.version, clean_start=clean_start)
    try:
        return await open_in(side, options, 5, clean_start=clean_start)
    except VersionRefused as fault:
        if isinstance(fault, HungUp) and side.takes_5:
            raise
        try:
            return await open_in(side, options, 4, clean_start=clean_start)
        except VersionRefused:
            raise fault from None  # it was not the version


async def open_in(side: Side, options: ConnectOptions, version: int, *, clean_start: bool) -> SideConnection:
    """Connect in a version of MQTT. raises: ConnectionLost, VersionRefused, Refused"""
    seconds = side.options.connect_seconds_max
    with trio.move_on_after(seconds):
        try:
            transport = await side.open_stream()
        except OSError as fault:
            raise ConnectionLost(failure_text(fault)) from fault
        stream = SideStream(transport, version)
        try:
            told = replace(options, version=version, clean_start=clean_start)
            packet = encode(connect_packet(told, options.client_id, clean_start=clean_start), version)
            stream.send_encoded(as_of_a_bridge(packet) if version == 4 and side.echoes else packet, "CONNECT")
            await stream.flush()
            return SideConnection(stream, await taken_connack(stream), version)
        except BaseException:
            await stream.close()
            raise
    raise ConnectionLost(f"no answer within {seconds:g} s")


def as_of_a_bridge(connect: bytes) -> bytes:
    """CONNECT of MQTT 3.1.1 as bridges of mosquitto send it (`try_private`)."""
    name = b"\x00\x04MQTT"
    at = connect.index(name) + len(name)
    return connect[:at] + bytes((connect[at] | BRIDGE_BIT,)) + connect[at + 1 :]


async def taken_connack(stream: SideStream) -> Connack:
    """raises: ConnectionLost, VersionRefused, Refused"""
    try:
        first = await stream.receive_within(message_bytes_max=ANSWER_BYTES_MAX)
    except TooLong:
        raise
    except MqttFault as fault:
        raise VersionRefused(f"the answer is no MQTT of this version: {fault}") from fault
    except ConnectionLost as fault:
        raise HungUp(fault.why) from fault
    if not isinstance(first, Connack):
        raise ConnectionLost(f"the broker began with {type(first).__name__.upper()}")
    if first.reason == Reason.UNSUPPORTED_PROTOCOL_VERSION:
        raise VersionRefused("the broker does not take this version of MQTT")
    if first.reason.is_error:
        raise Refused("the connection", first.reason, first.properties.get("reason_string") or first.reason.text)
    stream.packet_bytes_max = first.properties.get("maximum_packet_size", stream.packet_bytes_max)
    return first


async def subscribe(
    connection: SideConnection, side: Side, before: Iterable[str], *, retained_again: bool = False
) -> None:
    """Have the session the filters of the settings, and no others. Messages that arrive meanwhile come again.

    before: filters that it may have; retained_again: have retained messages for these too
    raises: ConnectionLost, Refused"""
    stream, seconds = connection.stream, side.options.connect_seconds_max
    gone = parts(sorted(set(before) - set(side.filters)))
    await ask(stream, [Unsubscribe(REQUEST_ID, part) for part in gone], Unsuback, seconds)
    handling = 0 if retained_again else 1
    wanted = [SubscriptionRequest(each, qos, True, True, handling) for each, qos in side.filters.items()]
    answers = await ask(stream, [Subscribe(REQUEST_ID, part) for part in parts(wanted)], Suback, seconds)
    reasons = [reason for answer in answers for reason in answer.reasons]
    for request, reason in zip(wanted, reasons, strict=False):
        if reason.is_error:
            raise Refused(f"the subscription to {request.topic_filter}", reason, reason.text)


Part = TypeVar("Part")


def parts(of: list[Part]) -> Iterable[tuple[Part, ...]]:
    return (tuple(of[first : first + FILTERS_MAX]) for first in range(0, len(of), FILTERS_MAX))


async def ask(stream: SideStream, packets: Iterable[Request], kind: type[Answer], seconds: float) -> list[Answer]:
    """Send each behind the answer to the one before. seconds: for each of them: a broker serves others in between

    raises: ConnectionLost, Refused"""
    answers: list[Answer] = []
    for packet in packets:
        with trio.move_on_after(seconds) as scope:
            stream.send(packet)
            await stream.flush()
            # A reason for each filter.
            while not isinstance(answer := await received(stream, ANSWER_BYTES_MAX + len(packet.filters)), kind):
                pass
            answers.append(answer)
        if scope.cancelled_caught:
            raise ConnectionLost("no answer to SUBSCRIBE")
    return answers


async def release_ids(connection: SideConnection, packet_ids: range = range(1, IDS_MAX + 1)) -> None:
    """Free every packet id of ours in the session there: the other session, which gave them, is gone.

    raises: ConnectionLost, Refused. cost: 256 KiB each way, once for a session that was lost"""
    stream = connection.stream
    others: list[Packet] = []
    size = 0
    for first in range(packet_ids.start, packet_ids.stop, RELEASED_AT_ONCE):
        waited = set(range(first, min(first + RELEASED_AT_ONCE, packet_ids.stop)))
        for packet_id in waited:
            stream.send(Pubrel(packet_id))
        await stream.flush()
        while waited:
            packet = await received(stream, message_bytes_max=KEPT_BYTES_MAX)
            if isinstance(packet, Pubcomp):
                waited.discard(packet.packet_id)
            elif not is_of_qos_0(packet) or size <= KEPT_QOS_0_BYTES_MAX:
                others.append(packet)
                size += held_bytes(packet)
                if size > KEPT_BYTES_MAX:
                    raise ConnectionLost(f"the broker sent {size >> 20} MiB instead of answers to PUBREL")
    stream.unread(others)


def is_of_qos_0(packet: Packet) -> bool:
    return isinstance(packet, Publish) and packet.qos == 0


async def received(
    stream: SideStream, answer_bytes_max: int = ANSWER_BYTES_MAX, *, message_bytes_max: int | None = None
) -> Packet:
    """raises: ConnectionLost, Refused for DISCONNECT"""
    try:
        packet = await stream.receive_within(answer_bytes_max, message_bytes_max=message_bytes_max)
    except MqttFault as fault:
        raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
    check_goes_on(packet)
    return packet


def check_goes_on(packet: Packet) -> None:
    """raises: Refused for DISCONNECT"""
    if isinstance(packet, Disconnect):
        raise Refused("to go on", packet.reason, packet.properties.get("reason_string") or packet.reason.text)


async def leave(connection: SideConnection, session_expiry: int | None = None) -> None:
    """DISCONNECT. session_expiry: 0 ends the session too, where it is MQTT 5; None: it stays. raises: ConnectionLost"""
    properties = Properties() if session_expiry is None else Properties(session_expiry_interval=session_expiry)
    with trio.move_on_after(LEAVE_SECONDS_MAX):
        connection.stream.send(Disconnect(Reason.NORMAL_DISCONNECTION, properties))
        await connection.stream.flush()
