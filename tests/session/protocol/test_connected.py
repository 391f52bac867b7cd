"""A client behind its CONNACK: batches of packets, pauses, faults and its end."""

from typing import Any

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.flow_control.rate_limits import Quotas, Rate, Rates
from rumq.session.protocol.connected import BULK_BYTES
from rumq.session.protocol.control_packets import PACKETS_A_TURN
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connect, connected

WILL = p.Will("gone", b"", 0, False)


def publish(packet_id: int = 1, payload: bytes = b"x", topic: str = "t") -> p.Publish:
    return p.Publish(topic, payload, 1, False, False, packet_id)


def test_a_batch_is_taken_up_to_its_last_whole_packet() -> None:
    wire = connected(Broker())
    whole, part = encode(publish(1), 5), encode(publish(2), 5)[:-1]
    assert wire.say(whole + part) == len(whole)
    assert [each.kind for each in wire.hears()] == [Kind.PUBACK]


def test_pingresp_follows_the_acknowledgements_before_it() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.holds = True
    wire.say(publish(), p.Pingreq())
    assert wire.hears() == []
    broker.commit()
    assert [each.kind for each in wire.hears()] == [Kind.PUBACK, Kind.PINGRESP]


def test_a_pingreq_that_comes_alone_is_quiet_unless_an_acknowledgement_goes_out_before_it() -> None:
    """A turn of such packets alone needs no stages."""
    broker = Broker()
    wire = connected(broker)
    wire.is_quiet = False
    wire.say(p.Pingreq())
    assert wire.is_quiet and [each.kind for each in wire.hears()] == [Kind.PINGRESP]
    broker.holds = wire.is_quiet = False
    for packets in ([p.Pingreq(), p.Pingreq()], [b"\xc0"], [p.Subscribe(1, (p.SubscriptionRequest("t"),))]):
        wire.say(*packets)
        assert not wire.is_quiet, packets
    wire.hears()
    broker.holds = True
    wire.say(publish())
    wire.say(p.Pingreq())
    assert not wire.hears() and not wire.is_quiet
    broker.commit()
    assert [each.kind for each in wire.hears()] == [Kind.PUBACK, Kind.PINGRESP]


def test_acknowledgements_that_come_alone_are_quiet_while_nobody_waits_for_them() -> None:
    broker = Broker()
    wire = connected(broker)
    window = wire.link.flow._owner.open_window(10)
    window.put(0, bytes([1, 1, 2, 2]), bytes(4 * 8), bytes(4 * 4))
    wire.is_quiet = False

    def is_quiet_after(*packets: Any) -> bool:
        wire.is_quiet = False
        wire.say(*packets)
        return bool(wire.is_quiet)

    assert is_quiet_after(p.Puback(1)) and window.in_flight == 3
    assert not is_quiet_after(p.Pubrec(3)), "PUBREL answers it"
    assert not is_quiet_after(b"\x40\x02\x00"), "not whole"
    assert not is_quiet_after(p.Puback(2), publish())
    assert not is_quiet_after(p.Puback(9, Reason.QUOTA_EXCEEDED)), "an error is for the decoder"
    window.put(4, bytes([1, 1]), bytes(2 * 8), bytes(2 * 4))
    wire.link.flow.window_full = True
    assert not is_quiet_after(p.Puback(5)), "messages wait for the window"
    wire.link.flow.window_full = False
    assert is_quiet_after(p.Puback(6)) and window.in_flight == 2


@pytest.mark.parametrize("behind", [b"", b"\xc0\0", b"\x40\x02\0\1"])
@pytest.mark.parametrize("properties", [{}, {"session_expiry_interval": 60}])
def test_a_client_that_comes_is_not_quiet_whatever_comes_in_the_same_read(
    behind: bytes, properties: dict[str, object]
) -> None:
    """Its CONNACK may wait for the journal, and is promised at the end of the turn."""
    wire = Wire(Broker())
    wire.say(connect(properties=properties), behind)
    assert not wire.is_quiet


def test_an_acknowledgement_that_is_journaled_is_not_quiet() -> None:
    broker = Broker()
    wire = connected(broker, properties={"session_expiry_interval": 60})
    window = wire.link.flow._owner.open_window(10)
    window.put(0, b"\1", bytes(8), bytes(4))
    wire.is_quiet = False
    wire.say(p.Puback(1))
    assert window.in_flight == 0 and not wire.is_quiet


def test_acknowledgements_of_a_client_with_a_rate_are_not_quiet() -> None:
    """It may have to wait, for which somebody has to set a timer."""
    wire = connected(Broker(), policy=ListenerPolicy(quotas=Quotas(sending=Rates(client=Rate(bytes=1)))))
    window = wire.link.flow._owner.open_window(10)
    window.put(0, b"\1", bytes(8), bytes(4))
    wire.is_quiet = False
    wire.say(p.Puback(1))
    assert window.in_flight == 0 and not wire.is_quiet


def test_pings_count_for_the_rate_of_their_client() -> None:
    broker = Broker()
    wire = connected(broker, policy=ListenerPolicy(quotas=Quotas(sending=Rates(client=Rate(bytes=1)))))
    wire.is_quiet = False
    wire.say(p.Pingreq())
    wire.say(p.Pingreq())
    assert wire.paused and broker.timers and not wire.is_quiet


def test_a_client_that_makes_up_topics_lets_others_have_their_turn() -> None:
    broker = Broker()
    broker.topics_max = 10_000
    wire = connected(broker)
    packets = [encode(publish(1, topic=f"t/{number}"), 5) for number in range(2 * PACKETS_A_TURN)]
    taken = wire.say(*packets)
    assert wire.paused and taken < len(b"".join(packets))
    [resume] = broker.next_turns
    resume()
    assert not wire.paused


def test_a_client_over_its_rate_is_not_read_until_its_bucket_refills() -> None:
    broker = Broker()
    quotas = Quotas(sending=Rates(client=Rate(messages=1)))
    wire = connected(broker, policy=ListenerPolicy(quotas=quotas))
    wire.say(*[publish(number) for number in range(1, 7)])
    [(seconds, resume)] = broker.timers
    assert wire.paused and 3.9 < seconds <= 4.0  # six messages, a burst of two
    resume()
    assert not wire.paused


@pytest.mark.parametrize("payload_bytes", [1, BULK_BYTES], ids=["a little", "in bulk"])
def test_backpressure_pauses_bulk_senders_first(payload_bytes: int) -> None:
    broker = Broker()
    wire = connected(broker)
    broker.backpressure.crowded = 1
    wire.say(publish(1, bytes(payload_bytes)))
    assert broker.slowed == ([True] if payload_bytes >= BULK_BYTES else [])


def test_who_sends_in_bulk_does_not_soon_count_as_one_that_sends_a_little() -> None:
    broker = Broker()
    wire = connected(broker)
    bits = broker.backpressure
    wire.say(publish(1, b"a little"))
    assert bits.modest == 1
    bits.modest = 0
    wire.say(publish(2, bytes(1 << 11)))
    assert not bits.modest and not bits.bulk, "more than a little, and not in bulk"
    wire.say(publish(3, bytes(BULK_BYTES)))
    assert bits.bulk == 1
    for number in range(64):
        wire.say(publish(4 + number, b"the end of a piece"))
    assert not bits.modest
    wire.say(publish(1000, b"a little"))
    assert bits.modest == 1


@pytest.mark.parametrize(("version", "heard"), [(5, [(Kind.DISCONNECT, 0x81)]), (4, [])])
def test_a_malformed_packet_ends_the_connection(version: int, heard: list[Any]) -> None:
    """MQTT 5.0, 4.13; before 5 there is no DISCONNECT from a server."""
    wire = connected(Broker(), version=version)
    wire.say(b"\x00\x00")
    assert wire.closed and [(each.kind, each.code) for each in wire.hears()] == heard


@pytest.mark.parametrize("behind", [p.Disconnect(), b"\x00\x00", connect()])
def test_the_id_of_a_message_in_the_read_that_ends_its_connection_is_noted_for_the_journal(behind: Any) -> None:
    """MQTT 5.0, 4.3.3: after a crash the log is searched for such messages from the last checkpoint on alone."""
    broker = Broker()
    wire = connected(broker, properties={"session_expiry_interval": 60})
    link = wire.link
    wire.say(p.Publish("t", b"x", 2, False, False, 7), behind)
    assert link.client.closed
    assert list(broker.journal.qos2_changed.values()) == [link.session]


def test_a_session_that_ends_with_such_a_read_is_not_noted() -> None:
    broker = Broker()
    wire = connected(broker, properties={"session_expiry_interval": 60})
    wire.say(p.Publish("t", b"x", 2, False, False, 7), p.Disconnect(properties={"session_expiry_interval": 0}))
    assert not broker.journal.qos2_changed


def test_a_reason_that_a_disconnect_may_not_carry_becomes_a_protocol_error() -> None:
    wire = connected(Broker())
    wire.link.refuse(MqttFault("a packet identifier", Reason.PACKET_IDENTIFIER_IN_USE))
    assert [each.code for each in wire.hears()] == [Reason.PROTOCOL_ERROR]


@pytest.mark.parametrize(("reason", "wills"), [(0x00, []), (0x04, ["gone"])])
def test_the_will_goes_out_unless_the_client_says_goodbye(reason: int, wills: list[str]) -> None:
    """MQTT 5.0, 3.14.4."""
    broker = Broker()
    wire = connected(broker, will=WILL)
    wire.say(p.Disconnect(Reason(reason)))
    assert wire.closed and broker.wills == wills


def test_a_lost_connection_publishes_the_will() -> None:
    broker = Broker()
    connected(broker, will=WILL).link.lost("gone")
    assert broker.wills == ["gone"]


def test_a_fault_of_ours_in_a_callback_ends_this_client_alone() -> None:
    broker = Broker()
    wire = connected(broker)
    wire.link.next_turn(lambda: 1 // 0)
    broker.next_turns[0]()
    assert broker.crashes == [wire] and wire.closed


def test_its_end_moves_its_counts_to_the_session_and_the_shard() -> None:
    broker = Broker()
    wire = connected(broker, properties={"session_expiry_interval": 60})
    wire.say(publish(1), publish(2), p.Pingreq())
    session = wire.link.session
    wire.link.end(with_will=False)
    assert session.published == broker.shard_totals.published == 2
    assert broker.shard_totals.packets_in == 4 and session.link is None
