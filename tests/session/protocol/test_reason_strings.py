"""MQTT-3.2.2-19: no reason string for who does not want one or has no room for it."""

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from rumq.session.protocol.reason_strings import WHY_MAX, allowed_reason, explained
from tests.session.broker import Broker, Wire

PUBACK = p.Puback(1, Reason.QUOTA_EXCEEDED)


@pytest.mark.parametrize(
    ("version", "wanted", "room", "strings", "has_it"),
    [
        (5, True, 0, True, True),
        (5, True, 100, True, True),
        (5, True, 8, True, False),
        (5, False, 0, True, False),
        (5, True, 0, False, False),
        (4, True, 0, True, False),
    ],
)
def test_it_is_added_where_it_may_be(version: int, wanted: bool, room: int, strings: bool, has_it: bool) -> None:
    client = Wire(Broker(Limits(reason_strings=strings))).link.client
    client.version, client.wants_reason_strings, client.packet_bytes_max = version, wanted, room
    assert (b"full" in explained(client, PUBACK, "full")) == has_it


def test_without_problem_information_only_the_first_and_the_last_packet_explain() -> None:
    """MQTT-3.1.2-29. Who does not say 1 is taken for 0 here: there are clients that fail at such acknowledgements."""
    client = Wire(Broker()).link.client
    client.version = 5
    assert not client.wants_reason_strings
    for packet in (PUBACK, p.Pubrec(1, Reason.QUOTA_EXCEEDED), p.Suback(1, (Reason.QUOTA_EXCEEDED,))):
        assert b"full" not in explained(client, packet, "full")
    for last in (p.Connack(reason=Reason.QUOTA_EXCEEDED), p.Disconnect(Reason.QUOTA_EXCEEDED)):
        assert b"full" in explained(client, last, "full")


def test_it_is_cut_to_what_an_mqtt_string_holds() -> None:
    client = Wire(Broker()).link.client
    client.version, client.wants_reason_strings = 5, True
    assert len(explained(client, PUBACK, "x" * 100_000)) < WHY_MAX + 100


def test_a_reason_that_a_packet_may_not_carry_is_a_protocol_error() -> None:
    assert allowed_reason(PacketType.CONNACK, Reason.SERVER_BUSY) == Reason.SERVER_BUSY
    assert allowed_reason(PacketType.DISCONNECT, Reason.PACKET_IDENTIFIER_IN_USE) == Reason.PROTOCOL_ERROR
