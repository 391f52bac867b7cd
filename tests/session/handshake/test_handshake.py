"""From the first byte to CONNACK, in pieces of any size, and everything that may go wrong meanwhile. MQTT 5.0, 3.1."""

from math import inf

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.handshake.handshake import Handshake
from rumq.session.protocol.connected import Connected
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connect


@pytest.mark.parametrize("version", [3, 4, 5])
def test_connect_is_taken_once_all_of_it_is_here_and_what_follows_with_it(version: int) -> None:
    wire = Wire(Broker(), version=version)
    data = encode(connect(version=version), version)
    assert all(wire.say(data[:size]) == 0 for size in range(len(data)))
    assert isinstance(wire.link, Handshake)
    ping = encode(p.Pingreq(), version)
    assert wire.say(data + ping) == len(data + ping)
    assert isinstance(wire.link, Connected)
    assert [each.kind for each in wire.hears()] == [Kind.CONNACK, Kind.PINGRESP]


def test_a_client_whose_session_lives_in_another_shard_is_left_to_it() -> None:
    broker = Broker()
    broker.lives_elsewhere = True
    wire = Wire(broker)
    broker.keep_alive_monitor.add(wire.link, 1010.0)
    data = encode(connect(), 5)
    assert wire.say(data) == len(data)
    assert not wire.hears() and not broker.registry.sessions and wire.link.due_at == inf


@pytest.mark.parametrize(
    ("version", "reason", "codes"),
    [
        (5, Reason.SERVER_BUSY, [0x89]),
        (5, Reason.PACKET_IDENTIFIER_IN_USE, [0x82]),  # not for a CONNACK
        (4, Reason.NOT_AUTHORIZED, [0x05]),
        (4, Reason.MALFORMED_PACKET, []),  # 3.1.1 has no return code for it
        (0, Reason.MALFORMED_PACKET, []),
    ],
)
def test_a_refusal_is_said_in_the_words_of_the_version(version: int, reason: Reason, codes: list[int]) -> None:
    wire = Wire(Broker(), version=version or 4)
    wire.link.refuse(MqttFault("why", reason), version)
    assert wire.closed and [each.code for each in wire.hears()] == codes


def test_an_unknown_version_is_refused_with_its_code() -> None:
    wire = Wire(Broker())
    wire.say(b"\x10\x0c\x00\x04MQTT\x06\x02\x00\x3c\x00\x00")
    assert wire.closed and [each.kind for each in wire.hears()] == [Kind.CONNACK]


def test_to_make_room_a_connection_that_sent_nothing_is_closed_without_a_word() -> None:
    wire = Wire(Broker())
    wire.link.turned_away("others wait")
    assert wire.closed and not wire.hears() and not wire.broker.events


def test_a_lost_connection_is_told_once() -> None:
    wire = Wire(Broker())
    wire.link.lost("gone")
    wire.link.lost("gone")
    assert wire.broker.events == [("client.lost", {"client_id": None, "why": "gone"})]
