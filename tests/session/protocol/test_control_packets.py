"""Packets that the kernel leaves over, one at a time. MQTT 5.0, 3.4 to 3.15.

Which of them may come when is for `test_packet_order`."""

from typing import Any

import pytest

from router import commands as c
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.flow_control.limits import Limits
from rumq.session.journal.entries import Acknowledged
from rumq.session.journal.recorder import REFUSED
from rumq.session.protocol import control_packets
from rumq.session.protocol.batched_subscribe import SHORT_BYTES
from rumq.session.protocol.control_packets import PACKETS_A_TURN, PROPERTIES_BYTES_MAX
from rumq.session.protocol.subscribe import FILTERS_A_TURN
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connected

LASTING: Any = {"session_expiry_interval": 3600}
LONG: Any = {"user_properties": [("a", "b")]}  # which leaves an acknowledgement to the ordinary decoder
AWAITS_PUBACK, AWAITS_PUBREC, AWAITS_PUBCOMP, DONE = 1, 2, 3, 0


def kinds(wire: Wire) -> list[Kind]:
    return [each.kind for each in wire.hears()]


def answers(wire: Wire) -> list[tuple[Kind, int]]:
    return [(each.kind, each.code) for each in wire.hears()]


def subscribing(count: int, **properties: Any) -> p.Subscribe:
    filters = tuple(p.SubscriptionRequest(f"{number}", 1) for number in range(count))
    return p.Subscribe(1, filters, properties)  # type: ignore[arg-type]


def serve(wire: Wire, packet: p.Packet) -> int:
    """What a packet counts for of the client's share of a turn."""
    data = encode(packet, wire.version)
    head = next(at for at in range(1, 5) if data[at] < 0x80) + 1
    return control_packets.serve(wire.link, data[0], data[head:])


# A client's share of a turn


def test_a_subscribe_counts_for_as_much_as_its_filters() -> None:
    """However it spreads its filters over packets, a client has so many granted in a turn."""
    filter_cost = PACKETS_A_TURN // FILTERS_A_TURN
    for count in (1, 5, FILTERS_A_TURN):
        assert serve(connected(Broker()), subscribing(count)) == 1 + count * filter_cost
    unsubscribe = p.Unsubscribe(1, ("a", "b", "c"))
    assert serve(connected(Broker()), unsubscribe) == 1 + 3 * filter_cost
    assert serve(connected(Broker()), p.Pingreq()) == 1


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("version", [4, 5])
def test_what_is_longer_than_a_short_packet_waits_for_later_turns(version: int, more: int) -> None:
    broker = Broker()
    wire = connected(broker, version=version)
    broker.commands.clear()
    rest = 2 + (1 if version == 5 else 0) + 2 + 1  # packet id, length of properties, length of filter, options
    topic_filter = "x" * (SHORT_BYTES - rest + more)
    wire.say(p.Subscribe(1, (p.SubscriptionRequest(topic_filter, 1),)))
    is_at_once = not more
    assert len(broker.commands) == len(wire.hears()) == int(is_at_once)
    assert wire.paused is bool(broker.next_turns) is not is_at_once


@pytest.mark.parametrize("packet", [p.Pingreq(), p.Unsubscribe(1, ("a",)), subscribing(2)], ids=type)
def test_every_packet_is_counted(packet: p.Packet) -> None:
    broker = Broker()
    wire = connected(broker)
    wire.link.count()
    before = broker.shard_totals.packets_in, broker.shard_totals.packets_out
    wire.say(packet)
    wire.link.count()
    after = broker.shard_totals.packets_in, broker.shard_totals.packets_out
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)


# Packets that are too large


def pairs(size: int) -> list[tuple[str, str]]:
    """User properties of more than `size` bytes."""
    return [("name", "x" * 1000)] * (size // 1000 + 1)


@pytest.mark.parametrize(
    "packet",
    [
        p.Puback(1, Reason.SUCCESS, {"user_properties": pairs(PROPERTIES_BYTES_MAX)}),
        p.Disconnect(Reason.NORMAL_DISCONNECTION, {"user_properties": pairs(PROPERTIES_BYTES_MAX)}),
        subscribing(1, user_properties=pairs(PROPERTIES_BYTES_MAX)),
        p.Unsubscribe(1, ("a",), {"user_properties": pairs(PROPERTIES_BYTES_MAX)}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_packet_may_not_have_properties_without_end(packet: p.Packet) -> None:
    """All of them are decoded in one turn, whatever the packet's size limit."""
    wire = connected(Broker())
    wire.say(packet)
    assert answers(wire) == [(Kind.DISCONNECT, Reason.PACKET_TOO_LARGE)] and wire.closed


def test_filters_may_be_more_than_properties() -> None:
    wire = connected(Broker())
    wire.say(p.Subscribe(1, tuple(p.SubscriptionRequest("x" * 4000, 1) for _ in range(20))))
    assert not wire.closed and wire.broker.next_turns


def test_before_mqtt_5_there_are_no_properties_to_be_too_many() -> None:
    """Where their length would stand is the length of the first filter: read as theirs, this one is 1,966,209."""
    wire = connected(Broker(), version=4)
    wire.say(p.Subscribe(1, (p.SubscriptionRequest("x" * 0x8181, 1),)))
    assert not wire.closed and wire.broker.next_turns


# SUBSCRIBE


def test_a_subscribe_waits_until_every_shard_sends_what_it_matches() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.commands.clear()
    broker.confirmations = []
    ping = encode(p.Pingreq(), 5)
    data = encode(subscribing(2), 5)
    assert wire.say(data, ping) == len(data)
    assert wire.paused and not broker.commands and not wire.hears()
    broker.confirmations[0]()
    assert not wire.paused and len(broker.commands) == 2 and kinds(wire) == [Kind.SUBACK]


def test_a_malformed_subscribe_asks_nothing_of_other_shards() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.confirmations = []
    wire.say(p.Subscribe(1, (p.SubscriptionRequest("a", 1), p.SubscriptionRequest("b/#/c", 1))))
    assert wire.closed and not broker.confirmations


def test_a_subscribe_of_a_client_that_has_gone_meanwhile_is_not_granted() -> None:
    broker = Broker()
    wire = connected(broker, properties=LASTING)
    broker.confirmations = []
    wire.say(subscribing(2))
    wire.link.lost("gone")
    broker.commands.clear()
    broker.confirmations[0]()
    assert not broker.commands and not wire.link.session.asked


# PUBLISH to a partition that takes none


@pytest.mark.parametrize(
    ("version", "qos", "answer"),
    [
        (5, 0, []),
        (5, 1, [(Kind.PUBACK, Reason.QUOTA_EXCEEDED)]),
        (5, 2, [(Kind.PUBREC, Reason.QUOTA_EXCEEDED)]),
        (4, 0, []),
        (4, 1, []),  # no answer: the client keeps it, and is disconnected when it may send it again
        (4, 2, []),
    ],
)
def test_a_message_that_is_not_taken(version: int, qos: int, answer: list[tuple[Kind, int]]) -> None:
    """MQTT 5.0, 3.4.2.1; MQTT 3.1.1 has no reason codes: 3.3.5."""
    broker = Broker()
    broker.batches[0].refusing = True
    broker.refusal = PublishRefusal(Reason.QUOTA_EXCEEDED, "the disk is full")
    wire = connected(broker, version=version)
    wire.say(p.Publish("t", b"x", qos, False, False, 1 if qos else None))
    assert answers(wire) == answer and not wire.closed and broker.batches[0].count == 0


def test_messages_behind_one_that_is_not_taken_are() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.batches[0].refusing = True
    broker.refusal = PublishRefusal(Reason.QUOTA_EXCEEDED, "the disk is full")
    first, second = (p.Publish("t", b"x", 1, False, False, packet_id) for packet_id in (1, 2))
    wire.say(first)
    broker.batches[0].refusing = False
    wire.say(second)
    assert answers(wire) == [(Kind.PUBACK, Reason.QUOTA_EXCEEDED), (Kind.PUBACK, Reason.SUCCESS)]


# Acknowledgements


def with_message(state: int, broker: Broker | None = None, version: int = 5) -> tuple[Wire, Window]:
    """A client of a session that lasts, with message 1 in flight."""
    fields: Any = {"properties": LASTING} if version == 5 else {"clean_start": False}
    wire = connected(broker or Broker(), version=version, **fields)
    wire.broker.journal.entries.clear()
    window = Window(10)
    window.put(0, bytes([state]), (5).to_bytes(8, "little"), (64).to_bytes(4, "little"))
    wire.link.wire.window = window
    return wire, window


def journalled(wire: Wire) -> list[tuple[int, int]]:
    """(first byte, packet id) of the acknowledgements in the journal."""
    found = []
    for entry in wire.broker.journal.entries:
        assert isinstance(entry, Acknowledged) and entry.number == wire.link.session.number
        numbers = memoryview(entry.acks).cast("I")
        found += [(each >> 16, each & 0xFFFF) for each in numbers]
    return found


@pytest.mark.parametrize(
    ("state", "packet", "becomes", "answer", "journal"),
    [
        (AWAITS_PUBACK, p.Puback(1, Reason.SUCCESS, LONG), DONE, [], [(0x40, 1)]),
        (AWAITS_PUBACK, p.Puback(1, Reason.NO_MATCHING_SUBSCRIBERS), DONE, [], [(0x40, 1)]),
        (AWAITS_PUBACK, p.Puback(1, Reason.QUOTA_EXCEEDED), DONE, [], [(REFUSED, 1)]),
        (AWAITS_PUBACK, p.Puback(2, Reason.SUCCESS, LONG), AWAITS_PUBACK, [], []),
        (AWAITS_PUBACK, p.Puback(2, Reason.QUOTA_EXCEEDED), AWAITS_PUBACK, [], []),
        (AWAITS_PUBREC, p.Pubrec(1, Reason.SUCCESS, LONG), AWAITS_PUBCOMP, [(Kind.PUBREL, 0)], [(0x50, 1)]),
        # An error ends the exchange: no PUBREL. MQTT 5.0, 4.3.3
        (AWAITS_PUBREC, p.Pubrec(1, Reason.QUOTA_EXCEEDED), DONE, [], [(REFUSED, 1)]),
        (AWAITS_PUBREC, p.Pubrec(2, Reason.SUCCESS, LONG), AWAITS_PUBREC, [(Kind.PUBREL, 0x92)], []),
        (AWAITS_PUBCOMP, p.Pubcomp(1, Reason.SUCCESS, LONG), DONE, [], [(0x70, 1)]),
        (AWAITS_PUBCOMP, p.Pubcomp(1, Reason.PACKET_IDENTIFIER_NOT_FOUND), DONE, [], [(0x70, 1)]),
        (AWAITS_PUBCOMP, p.Pubcomp(2, Reason.SUCCESS, LONG), AWAITS_PUBCOMP, [], []),
    ],
)
def test_a_message_of_the_broker_is_acknowledged_or_refused(
    state: int, packet: p.Packet, becomes: int, answer: list[tuple[Kind, int]], journal: list[tuple[int, int]]
) -> None:
    """MQTT 5.0, 4.3 and 4.4; what the session knows after a crash is what the journal has."""
    wire, window = with_message(state)
    wire.say(packet)
    assert (window.state_of(1), answers(wire), journalled(wire)) == (becomes, answer, journal)


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        (p.Pubrec(1, Reason.SUCCESS, LONG), [(Kind.PUBREL, 0x92)]),
        (p.Pubrec(1, Reason.QUOTA_EXCEEDED), []),
        (p.Puback(1, Reason.SUCCESS, LONG), []),
        (p.Pubcomp(1, Reason.SUCCESS, LONG), []),
    ],
)
def test_a_session_that_never_had_a_message_of_qos_1_or_2(packet: p.Packet, answer: list[tuple[Kind, int]]) -> None:
    wire = connected(Broker())
    wire.say(packet)
    assert answers(wire) == answer and not wire.closed


def test_a_pubrel_ends_a_message_of_the_client_once() -> None:
    """MQTT 5.0, 4.3.3; the second PUBREL finds nothing, as after PUBCOMP was lost."""
    broker = Broker()
    wire = connected(broker, properties=LASTING)
    wire.say(p.Publish("t", b"x", 2, False, False, 7))
    wire.hears()
    broker.journal.entries.clear()
    for reason, journal in ((Reason.SUCCESS, [(0x62, 7)]), (Reason.PACKET_IDENTIFIER_NOT_FOUND, [])):
        wire.say(p.Pubrel(7, Reason.SUCCESS, LONG))
        assert answers(wire) == [(Kind.PUBCOMP, reason)] and journalled(wire) == journal
        broker.journal.entries.clear()


@pytest.mark.parametrize(
    ("state", "packet", "answer"),
    [
        (AWAITS_PUBREC, p.Pubrec(1, Reason.SUCCESS, LONG), Kind.PUBREL),
        (DONE, p.Pubrel(7, Reason.SUCCESS, LONG), Kind.PUBCOMP),
    ],
)
def test_pubrel_and_pubcomp_wait_for_the_journal_and_messages_do_not_wait_for_them(
    state: int, packet: p.Packet, answer: Kind
) -> None:
    """After a crash the exchange would be where it was before, and the peer's part over."""
    broker = Broker()
    wire, _ = with_message(state, broker)
    broker.holds = True
    wire.say(packet)
    assert not wire.hears() and not wire.link.flow.waits
    broker.commit()
    assert kinds(wire) == [answer]


# DISCONNECT


@pytest.mark.parametrize(
    ("at_connect", "wanted", "expiry"),
    [
        (60, None, 60),
        (60, 30, 30),
        (60, 0, 0),
        (60, 90, 90),
        (60, 9999, 100),  # no more than the broker's limit
        (0, 0, 0),
        (0, None, 0),
    ],
)
def test_a_disconnect_may_change_how_long_the_session_lasts(at_connect: int, wanted: int | None, expiry: int) -> None:
    """MQTT 5.0, 3.14.2.2.2."""
    broker = Broker(Limits(session_expiry_seconds_max=100))
    wire = connected(broker, properties={"session_expiry_interval": at_connect})
    session = wire.link.session
    properties: Any = {} if wanted is None else {"session_expiry_interval": wanted}
    wire.say(p.Disconnect(Reason.NORMAL_DISCONNECTION, properties))
    assert wire.closed and not wire.hears() and session.expiry_seconds == expiry
    assert bool(session.ended) is (expiry == 0)
    assert isinstance(broker.commands[-1], c.End if session.ended else c.Detach)


@pytest.mark.parametrize("at_connect", [0, None])
def test_a_session_that_was_to_end_with_its_connection_cannot_be_made_to_last(at_connect: int | None) -> None:
    """MQTT-3.1.2-11 of a non-zero value after 0: a protocol error, 3.14.2.2.2."""
    broker = Broker()
    properties: Any = {} if at_connect is None else {"session_expiry_interval": at_connect}
    wire = connected(broker, properties=properties, will=p.Will("gone", b"", 0, False))
    wire.say(p.Disconnect(Reason.NORMAL_DISCONNECTION, LASTING))
    assert answers(wire) == [(Kind.DISCONNECT, Reason.PROTOCOL_ERROR)]
    assert wire.link.session.ended and broker.wills == ["gone"], "it did not take its leave"


def test_a_client_names_no_other_server() -> None:
    """3.14.2.2.5: the server reference is the server's to send."""
    broker = Broker()
    wire = connected(broker)
    wire.say(p.Disconnect(Reason.NORMAL_DISCONNECTION, {"server_reference": "elsewhere"}))
    assert answers(wire) == [(Kind.DISCONNECT, Reason.PROTOCOL_ERROR)]
    assert not broker.told("client.disconnected")


@pytest.mark.parametrize(
    ("reason", "wills"),
    [
        (Reason.NORMAL_DISCONNECTION, []),
        (Reason.DISCONNECT_WITH_WILL_MESSAGE, ["gone"]),
        (Reason.UNSPECIFIED_ERROR, ["gone"]),
    ],
)
def test_a_will_goes_out_unless_all_was_well_and_the_operator_is_told_why(reason: Reason, wills: list[str]) -> None:
    """MQTT-3.14.4-3."""
    broker = Broker()
    connected(broker, will=p.Will("gone", b"", 0, False)).say(p.Disconnect(reason))
    assert broker.told("client.disconnected") == [{"client_id": "c", "reason": int(reason)}]
    assert broker.wills == wills


def test_what_comes_behind_a_disconnect_is_not_served() -> None:
    """MQTT-3.14.4-1: nothing may come behind it."""
    broker = Broker()
    wire = connected(broker)
    wire.say(p.Disconnect(), p.Publish("t", b"x", 1, False, False, 1))
    assert not wire.hears() and broker.batches[0].count == 0


# PINGREQ


@pytest.mark.parametrize("version", [3, 4, 5])
def test_each_pingreq_is_answered(version: int) -> None:
    """MQTT-3.12.4-1."""
    wire = connected(Broker(), version=version)
    wire.say(p.Pingreq(), p.Pingreq())
    assert kinds(wire) == [Kind.PINGRESP] * 2
