"""The tables of reason codes, properties and packet types say what the standard says. MQTT 5.0, 2.1 to 2.4.

paho-mqtt keeps the same tables, written by somebody else.
"""

import pickle

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from rumq.mqtt import errors
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, UnsupportedVersion
from rumq.mqtt.packet_types import FIRST_BYTE, PacketType
from rumq.mqtt.packets import Suback
from rumq.mqtt.properties import PROPERTIES, WILL, Properties, Property, WireType, decode_properties
from rumq.mqtt.reasons import (
    CONNACK_RETURN_CODES,
    REASONS_IN,
    Reason,
    maybe_connack_return_code,
)
from rumq.mqtt.wire import Fields

# 3.2.2.2 has it for a will's payload, paho does not.
NOT_IN_PAHO = {(Reason.PAYLOAD_FORMAT_INVALID, PacketType.CONNACK)}


def test_reason_codes_stand_where_paho_says() -> None:
    theirs = {
        (code, packet_type)
        for code, names in ReasonCode(PacketTypes.CONNACK).names.items()
        for places in names.values()
        for packet_type in places
    }
    ours = {(reason, packet_type) for packet_type, reasons in REASONS_IN.items() for reason in reasons}
    assert ours - NOT_IN_PAHO == theirs


def test_properties_have_the_numbers_types_and_places_that_paho_says() -> None:
    paho = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    wires = {
        "Byte": {WireType.BYTE, WireType.FLAG},
        "Two Byte Integer": {WireType.TWO_BYTES},
        "Four Byte Integer": {WireType.FOUR_BYTES},
        "Variable Byte Integer": {WireType.VARIABLE},
        "Binary Data": {WireType.BINARY},
        "UTF-8 Encoded String": {WireType.STRING},
        "UTF-8 String Pair": {WireType.PAIR},
    }
    numbers = {name.lower().replace(" ", "_"): number for name, number in paho.names.items()}
    assert {prop.words.replace(" ", "_"): prop.identifier for prop in PROPERTIES} == numbers
    for prop in PROPERTIES:
        wire, places = paho.properties[prop.identifier]
        assert prop.wire in wires[paho.types[wire]]
        ours = {PacketTypes.WILLMESSAGE if place == WILL else place for place in prop.places}
        assert ours == set(places), prop.name


def test_every_property_has_its_key() -> None:
    assert [prop.name for prop in PROPERTIES] == list(Properties.__annotations__)
    assert [prop.name for prop in PROPERTIES if prop.repeats_in] == [
        "subscription_identifiers",
        "user_properties",
    ]


@pytest.mark.parametrize(
    "prop", [prop for prop in PROPERTIES if prop.wire is WireType.FLAG], ids=lambda prop: prop.name
)
def test_a_flag_is_read_as_a_truth_value(prop: Property) -> None:
    for byte in (0, 1):
        found = decode_properties(Fields(bytes([2, prop.identifier, byte])), prop.places[0])
        assert repr(found) == repr({prop.name: bool(byte)})


def test_every_reason_has_a_text_and_a_place() -> None:
    everywhere = frozenset().union(*REASONS_IN.values())
    assert everywhere == set(Reason)
    texts = [reason.text for reason in Reason]
    assert len(set(texts)) == len(texts) == 43
    assert all("\n" not in text and len(text) < 60 for text in texts)


def test_reason_0_has_a_name_in_each_packet() -> None:
    assert len({Reason.SUCCESS, Reason.NORMAL_DISCONNECTION, Reason.GRANTED_QOS_0}) == 1


def test_return_codes_before_5_say_what_a_client_can_do() -> None:
    """MQTT 3.1.1, 3.2.2.3. Where no code fits the connection is closed without a CONNACK."""
    assert [maybe_connack_return_code(reason) for reason in CONNACK_RETURN_CODES] == [0, 1, 2, 3, 4, 5]
    assert maybe_connack_return_code(Reason.BANNED) == 5
    assert maybe_connack_return_code(Reason.SERVER_BUSY) == 3
    silent = {reason for reason in REASONS_IN[PacketType.CONNACK] if maybe_connack_return_code(reason) is None}
    assert silent == {
        Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR, Reason.TOPIC_NAME_INVALID, Reason.PACKET_TOO_LARGE,
        Reason.PAYLOAD_FORMAT_INVALID, Reason.RETAIN_NOT_SUPPORTED, Reason.QOS_NOT_SUPPORTED,
    }  # fmt: skip


@pytest.mark.parametrize("reason", sorted(REASONS_IN[PacketType.SUBACK]))
def test_a_refused_filter_is_0x80_before_5(reason: Reason) -> None:
    assert encode(Suback(1, (reason,)), 4)[-1] == (reason if reason < 0x80 else 0x80)


def test_first_bytes_are_those_of_table_2_2() -> None:
    assert bytes(FIRST_BYTE.values()).hex(" ") == "10 20 40 50 62 70 82 90 a2 b0 c0 d0 e0 f0"


FAULTS = [
    *(kind("what was seen") for kind in vars(errors).values()
      if isinstance(kind, type) and issubclass(kind, MqttFault) and hasattr(kind, "always")),
    MqttFault("what was seen", Reason.QUOTA_EXCEEDED),
    UnsupportedVersion("what was seen", 4),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_goes_from_process_to_process_whole(fault: MqttFault) -> None:
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is type(fault) and vars(again) == vars(fault)
    assert str(again) == str(fault) == f"what was seen (0x{fault.reason:02X} {fault.reason.text})"


def test_every_fault_has_the_reason_its_name_says() -> None:
    assert {type(fault).__name__: fault.reason for fault in FAULTS} == {
        "MalformedPacket": 0x81, "ProtocolViolation": 0x82, "TopicFilterInvalid": 0x8F,
            "TopicNameInvalid": 0x90,
        "PacketTooLarge": 0x95, "UnsupportedVersion": 0x84, "MqttFault": 0x97,
    }  # fmt: skip
