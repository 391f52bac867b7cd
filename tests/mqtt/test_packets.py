"""Every packet of the tables is what it should be, however its bytes arrive. MQTT 5.0, 3; MQTT 3.1.1, 3."""

from collections.abc import Iterable

import pytest

from rumq.mqtt.connect import version_of_connect
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, UnsupportedVersion
from rumq.mqtt.frames import Frame, FrameReader
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Disconnect, Packet, Pingreq, Puback, Pubcomp, Pubrec, Pubrel
from tests.mqtt.broken_packets_table import BROKEN
from tests.mqtt.packets_table import VALID, Row, row

ALL = (*VALID, *BROKEN)
NEXT = row("the next packet", 4, "C0 00", means=Pingreq())

rows = pytest.mark.parametrize("a", ALL, ids=lambda a: a.name)
valid_rows = pytest.mark.parametrize("a", VALID, ids=lambda a: a.name)


def outcomes(chunks: Iterable[bytes], version: int) -> list[Packet | tuple[type[MqttFault], int]]:
    """What one connection receives, to the end or to its first fault."""
    reader = FrameReader(version=version)
    got: list[Packet | tuple[type[MqttFault], int]] = []
    try:
        for chunk in chunks:
            reader.receive(chunk)
            got += [decode(frame.first_byte, frame.body, version) for frame in reader.frames()]
    except MqttFault as fault:
        got.append((type(fault), fault.reason))
    else:
        assert reader.buffered_bytes == 0
    return got


def one_by_one(wire: bytes) -> list[bytes]:
    return [wire[at : at + 1] for at in range(len(wire))]


def test_no_two_packets_of_the_table_have_one_name() -> None:
    names = [a.name for a in ALL]
    assert sorted(set(names)) == sorted(names)


def test_the_table_has_every_packet_in_every_version_valid_and_broken() -> None:
    wanted = {(kind, version) for kind in PacketType for version in (3, 4, 5)}
    wanted -= {(PacketType.AUTH, 3), (PacketType.AUTH, 4)}
    assert {(a.wire[0] >> 4, a.version) for a in VALID} == wanted
    assert {a.wire[0] >> 4 for a in BROKEN} == {0, *PacketType}


@rows
def test_a_packet_is_understood_whole(a: Row) -> None:
    assert outcomes([a.wire], a.version) == [a.means]


@rows
def test_a_packet_is_understood_byte_by_byte(a: Row) -> None:
    assert outcomes(one_by_one(a.wire), a.version) == [a.means]


@rows
def test_a_packet_is_understood_with_the_next_one_behind_it(a: Row) -> None:
    got = outcomes([a.wire + NEXT.wire[:1], NEXT.wire[1:]], a.version)
    assert got == ([a.means] if isinstance(a.means, tuple) else [a.means, NEXT.means])


def has_short_forms(a: Row) -> bool:
    """MQTT 5.0, 3.4.2 to 3.7.2 and 3.14.2: reason code and property length may be missing."""
    return a.version == 5 and type(a.means) in (Puback, Pubrec, Pubrel, Pubcomp, Disconnect) and len(a.wire) <= 6


@pytest.mark.parametrize("a", [a for a in VALID if not has_short_forms(a)], ids=lambda a: a.name)
def test_a_packet_with_a_byte_too_many_or_too_few_is_never_taken_for_the_same(a: Row) -> None:
    for frame in frames_of_other_lengths(a):
        try:
            assert decode(frame.first_byte, frame.body, a.version) != a.means
        except MqttFault:
            pass


def frames_of_other_lengths(a: Row) -> list[Frame]:
    body = a.wire[2:]
    assert a.wire[1] == len(body) < 128
    return [Frame(a.wire[0], body + b"\0"), *(Frame(a.wire[0], body[:size]) for size in range(len(body)))]


@valid_rows
def test_a_packet_is_written_byte_for_byte_as_the_standard_draws_it(a: Row) -> None:
    assert not isinstance(a.means, tuple)
    if a.shortest:
        assert encode(a.means, a.version) == a.wire


@valid_rows
def test_whatever_is_written_means_the_same(a: Row) -> None:
    if a.name in ("publish 3.1 of QoS 0 with dup", "connack of a 3.1.1 server to a client of 5"):
        return  # accepted from others, never written
    assert not isinstance(a.means, tuple)
    assert outcomes([encode(a.means, a.version)], a.version) == [a.means]


@pytest.mark.parametrize("a", [a for a in ALL if a.wire[0] == 0x10], ids=lambda a: a.name)
def test_a_connect_tells_its_version_however_faulty_the_rest_is(a: Row) -> None:
    if isinstance(a.means, tuple) and (a.means[0] is UnsupportedVersion or len(a.wire) < 9):
        with pytest.raises(a.means[0]):
            version_of_connect(a.wire[2:])
    else:
        assert version_of_connect(a.wire[2:]) == a.version


@pytest.mark.parametrize(
    ("name", "level", "answer_version"),
    [
        (b"MQTT", 6, 5),
        (b"MQTT", 3, 4),
        (b"MQIsdp", 4, 4),
        (b"MQTT", 0x84, 4),
        (b"MQTT", 0x85, 5),
        (b"HTTP", 5, 4),
        (b"", 0, 4),
    ],
)
def test_a_foreign_protocol_is_answered_in_the_form_it_may_understand(
    name: bytes, level: int, answer_version: int
) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        version_of_connect(len(name).to_bytes(2) + name + bytes([level]))
    assert caught.value.answer_version == answer_version
