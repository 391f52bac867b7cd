"""CONNECT from bytes: how much is read, and in which version a fault is told."""

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.properties import COUNT_MAX, Properties
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from rumq.session.handshake.first_packet import read_connect, read_packet, version_of
from tests.session.broker import Broker, Wire, connect


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_whole_connect_is_read_and_its_version_is_known(version: int) -> None:
    client = Wire(Broker()).link.client
    data = encode(connect("c", version), version)
    packet, stop = read_connect(client, data + b"more", 0, len(data) + 4)
    assert packet is not None and (packet.client_id, stop, client.version) == ("c", len(data), version)


def test_a_large_connect_is_refused_as_soon_as_its_version_is_here() -> None:
    client = Wire(Broker(Limits(connect_bytes_max=100))).link.client
    data = encode(connect("c" * 200), 5)
    assert read_connect(client, data, 0, 5) == (None, 0)
    with pytest.raises(MqttFault) as fault:
        read_connect(client, data, 0, 12)
    assert fault.value.reason == Reason.PACKET_TOO_LARGE and client.version == 5


MANY = Properties(user_properties=[("a", "b")] * (COUNT_MAX + 1))
MUCH = Properties(user_properties=[("a", "b" * 60_000), ("a", "b" * 10_000)])
AS_MANY_AS_MAY_BE = Properties(user_properties=[("a", "b")] * COUNT_MAX)


@pytest.mark.parametrize("place", ["connect", "will"])
@pytest.mark.parametrize(("properties", "reason"), [(MANY, Reason.QUOTA_EXCEEDED), (MUCH, Reason.PACKET_TOO_LARGE)])
def test_properties_of_those_who_have_not_logged_in_are_bounded(
    place: str, properties: Properties, reason: Reason
) -> None:
    def of(given: Properties) -> bytes:
        will = p.Will("w", b"", 0, False, given if place == "will" else Properties())
        return encode(connect("c", will=will, properties=given if place == "connect" else Properties()), 5)

    client = Wire(Broker()).link.client
    data = of(properties)
    with pytest.raises(MqttFault) as fault:
        read_connect(client, bytearray(data), 0, len(data))
    assert fault.value.reason == reason
    data = of(AS_MANY_AS_MAY_BE)
    assert read_connect(client, bytearray(data), 0, len(data))[1] == len(data)


METHOD = Properties(authentication_method="SCRAM-SHA-256")


@pytest.mark.parametrize("packet", [p.Auth(properties=METHOD | MANY), p.Disconnect(properties=MANY)])
def test_packets_behind_connect_are_bounded_too(packet: p.Packet) -> None:
    client = Wire(Broker()).link.client
    client.version = 5
    data = encode(packet, 5)
    with pytest.raises(MqttFault) as fault:
        read_packet(client, bytearray(data), 0, len(data))
    assert fault.value.reason == Reason.QUOTA_EXCEEDED


def test_other_packets_before_connack_are_refused_before_they_are_read() -> None:
    client = Wire(Broker()).link.client
    client.version = 5
    with pytest.raises(ProtocolViolation):
        read_packet(client, bytearray(b"\x82"), 0, 1)


def test_another_protocol_by_its_name_is_not_answered() -> None:
    """MQTT 3.1.1, 3.1.2.1."""
    with pytest.raises(ProtocolViolation):
        version_of(b"\x00\x04AMQP\x05")
